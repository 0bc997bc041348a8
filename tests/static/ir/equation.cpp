// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/ir/equation.hpp>

#include <initializer_list>
#include <string_view>

namespace gs = gshard;
using gs::fault;

namespace {

struct parsed {
  gs::equation value;
  gs::diagnostic problem;
};
constexpr parsed parse(std::string_view text) {
  parsed p;
  p.value = gs::parse_equation(text, p.problem);
  return p;
}
constexpr bool reads(const gs::short_list& l, std::initializer_list<int> factors) {
  int i = 0;
  for (int f : factors)
    if (i >= l.size() || l[i++] != f) return false;
  return i == l.size();
}
constexpr bool refused(std::string_view text, fault f, int column, std::string_view letter = {}) {
  const gs::diagnostic p = parse(text).problem;
  return p.what == f && p.first == column && p.subject.view() == text && p.word.view() == letter;
}

// Letters are numbered in order of appearance.
static_assert([] {
  const parsed p = parse("GSM,ME->GSE");
  return !p.problem && p.value.count == 2 && p.value.factors == 4 && reads(p.value.operand(0), {0, 1, 2}) &&
         reads(p.value.operand(1), {2, 3}) && reads(p.value.output, {0, 1, 3}) && p.value.letters[3] == 'E';
}());
static_assert(parse("Aa->aA").value.factors == 2);
static_assert(parse("ab->ba").value.factor('b') == 1 && parse("ab->ba").value.factor('c') == -1);

// Spaces mean nothing, and the letters' names mean nothing to the factors.
constexpr auto same_factors = [](std::string_view a, std::string_view b) {
  const gs::equation x = parse(a).value, y = parse(b).value;
  return !parse(a).problem && !parse(b).problem && x.operands == y.operands && x.output == y.output &&
         x.count == y.count;
};
static_assert(same_factors("GSEC,GSM->EGCM", " GSEC , GSM -> EGCM "));
static_assert(same_factors("GSEC,GSM->EGCM", "abcd,abe->cade"));
static_assert(!same_factors("ab,bc->ac", "ab,bc->ca"));

// Scalars, sums, diagonals, one to four operands.
static_assert(!parse("->").problem && parse("->").value.count == 1 && parse("->").value.output.empty());
static_assert(!parse("GSE->").problem && !parse(",->").problem && parse(",->").value.count == 2);
static_assert(reads(parse("ii->i").value.operand(0), {0, 0}) && !parse("ii->i").problem);
static_assert(parse("a,b,c,d->abcd").value.count == 4 && !parse("a,b,c,d->abcd").problem);

// Mistakes, each with the column it is at.
static_assert(refused("GSM;ME->GSE", fault::malformed_equation, 3));
static_assert(refused("GSM,ME", fault::malformed_equation, 6));
static_assert(refused("", fault::malformed_equation, 0));
static_assert(refused("GSM,ME-GSE", fault::malformed_equation, 6));
static_assert(refused("GSM,ME-", fault::malformed_equation, 6));
static_assert(refused("GSM,ME>GSE", fault::malformed_equation, 6));
static_assert(refused("GSM->GS->G", fault::malformed_equation, 7));
static_assert(refused("GSM->GS,G", fault::malformed_equation, 7));
static_assert(refused("G1->G", fault::malformed_equation, 1));
static_assert(refused("a,b,c,d,e,f,g->abcdefg", fault::malformed_equation, 13));
static_assert(refused("abcdefghi->a", fault::malformed_equation, 8));
static_assert(refused("abcdefgh,ijklmnop->a", fault::malformed_equation, 16));
static_assert(refused("GSM,ME->GSX", fault::index_in_no_operand, 10, "X"));
static_assert(refused("->a", fault::index_in_no_operand, 2, "a"));
static_assert(refused("GSM,ME->GSG", fault::index_repeated, 10, "G"));
static_assert(refused("GSM->GGS", fault::index_repeated, 6, "G"));

// Fifteen letters and eight dims are the most.
static_assert(!parse("abcdefgh,ijklmno->a").problem && parse("abcdefgh,ijklmno->a").value.factors == 15);

}  // namespace

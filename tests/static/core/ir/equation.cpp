// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/core/ir/equation.hpp>

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

// Spaces have no effect, and the letters' names do not change the factors.
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

// Mistakes, each with its column.
static_assert(refused("GSM;ME->GSE", fault::malformed_equation, 3));
static_assert(refused("GSM,ME", fault::malformed_equation, 6));
static_assert(refused("", fault::malformed_equation, 0));
static_assert(refused("GSM,ME-GSE", fault::malformed_equation, 6));
static_assert(refused("GSM,ME-", fault::malformed_equation, 6));
static_assert(refused("GSM,ME>GSE", fault::malformed_equation, 6));
static_assert(refused("GSM->GS->G", fault::malformed_equation, 7));
static_assert(refused("GSM->GS,G", fault::malformed_equation, 7));
static_assert(refused("G1->G", fault::malformed_equation, 1));
static_assert(refused("abcdefghi->a", fault::equation_too_large, 8));
static_assert(refused("abcdefgh,ijklmnop->a", fault::equation_too_large, 16));
static_assert(refused("...a->...", fault::ellipsis_of_einsum, 0));
static_assert(refused("GSM,ME->GSX", fault::index_in_no_operand, 10, "X"));
static_assert(refused("->a", fault::index_in_no_operand, 2, "a"));
static_assert(refused("GSM,ME->GSG", fault::index_repeated, 10, "G"));
static_assert(refused("GSM->GGS", fault::index_repeated, 6, "G"));

// The forms of numpy: without an output, the indices that occur once, in alphabetical order; and "...".
constexpr gs::diagnostic problem_of(std::string_view text) {
  gs::diagnostic problem;
  gs::parse_equation(text, problem, gs::equation_form::numpy);
  return problem;
}
constexpr bool means(std::string_view text, std::initializer_list<int> ranks, std::string_view with_letters) {
  gs::diagnostic problem;
  const gs::equation written = gs::parse_equation(text, problem, gs::equation_form::numpy);
  const gs::equation x = gs::without_ellipses(written, ranks.begin(), text, problem), y = parse(with_letters).value;
  // Factors of "..." come last, so the comparison is by which dims share a factor.
  const auto factor_at = [](const gs::equation& e, int operand, int d) { return operand < e.count ? e.operand(operand)[d] : e.output[d]; };
  bool same = !problem && !parse(with_letters).problem && x.count == y.count && x.factors == y.factors;
  for (int i = 0; i <= x.count && same; ++i) {
    const int rank = i < x.count ? x.operand(i).size() : x.output.size();
    same = rank == (i < y.count ? y.operand(i).size() : y.output.size());
    for (int d = 0; d < rank && same; ++d)
      for (int j = 0; j <= i; ++j)
        for (int c = 0; c < (j < x.count ? x.operand(j).size() : x.output.size()); ++c)
          same = same && (factor_at(x, i, d) == factor_at(x, j, c)) == (factor_at(y, i, d) == factor_at(y, j, c));
  }
  return same;
}
static_assert(means("ab,bc", {2, 2}, "ab,bc->ac") && means("ba", {2}, "ba->ab") && means("ii", {2}, "ii->") && means("a", {1}, "a->a"));
static_assert(means("zB,Ba", {2, 2}, "zB,Ba->az") && means("aZ", {2}, "aZ->Za") && means("a,a,a", {1, 1, 1}, "a,a,a->"));
static_assert(means("...m,mh->...h", {4, 2}, "xyzm,mh->xyzh") && means("...m,mh", {3, 2}, "xym,mh->xyh"));
static_assert(means("...,...->...", {2, 1}, "xy,y->xy") && means("b...c,...c->b...", {4, 2}, "bxyc,yc->bxy"));
static_assert(means("...ii->...i", {4}, "xyii->xyi") && means("a...->...a", {3}, "axy->xya") && means("...a->...a", {1}, "a->a"));
static_assert(means("...a->a", {1}, "a->a"));  // no index is contracted
static_assert(problem_of("...a...->a").what == fault::malformed_equation && problem_of("..a->a").what == fault::malformed_equation);
static_assert(problem_of("a->...a").what == fault::malformed_equation && problem_of("").what == fault::malformed_equation);
static_assert(problem_of("ab,bc-").what == fault::malformed_equation && problem_of("ab,").what == fault::nothing);
constexpr fault fault_of_ranks(std::string_view text, std::initializer_list<int> ranks) {
  gs::diagnostic problem;
  const gs::equation e = gs::parse_equation(text, problem, gs::equation_form::numpy);
  gs::without_ellipses(e, ranks.begin(), text, problem);
  return problem.what;
}
static_assert(fault_of_ranks("...a->a", {2}) == fault::ellipsis_not_kept);
static_assert(fault_of_ranks("...,abcdefgh->...", {8, 8}) == fault::equation_too_large);
static_assert(fault_of_ranks("ab...,...->...", {4, 2}) == fault::nothing);
static_assert(fault_of_ranks("abc,...->abc...", {3, 6}) == fault::equation_too_large);

// Fifteen letters, eight dims and sixteen operands are the most.
static_assert(!parse("a,b,c,d,e,f,g->abcdefg").problem && parse("a,a,a,a,a,a,a,a,a,a,a,a,a,a,a,a->a").value.count == 16);
static_assert(refused("a,a,a,a,a,a,a,a,a,a,a,a,a,a,a,a,a->a", fault::equation_too_large, 33));
static_assert(!parse("abcdefgh,ijklmno->a").problem && parse("abcdefgh,ijklmno->a").value.factors == 15);

}  // namespace

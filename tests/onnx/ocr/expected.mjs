// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Runs a model of one input and one output with onnxruntime, on one thread. Writes a folder that `gshard-onnx check` reads, and the input
// also as input.npy for `gshard-onnx run`.
// usage: node expected.mjs PACKAGES MODEL FOLDER EXTENTS [RUNS]
//   PACKAGES  the folder with node_modules
//   EXTENTS   of the input, such as 1,3,96,128
//   RUNS      prints the median time of this number of runs

import { copyFileSync, mkdirSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";

const [packages, model, folder, shape, runs = "0"] = process.argv.slice(2);
const { InferenceSession, Tensor } = createRequire(join(packages, "node_modules/"))("onnxruntime-node");
const extents = shape.split(",").map(Number);

// Rows of five pixels.
const glyphs = {
  G: ["01111", "10000", "10000", "10011", "10001", "10001", "01111"],
  S: ["01111", "10000", "10000", "01110", "00001", "00001", "11110"],
  H: ["10001", "10001", "10001", "11111", "10001", "10001", "10001"],
  A: ["01110", "10001", "10001", "11111", "10001", "10001", "10001"],
  R: ["11110", "10001", "10001", "11110", "10100", "10010", "10001"],
  D: ["11110", "10001", "10001", "10001", "10001", "10001", "11110"],
};

// Dark letters on a bright ground, with noise.
function images() {
  const [height, width] = extents.slice(-2), text = "GSHARD", size = 4;
  const pixels = new Float32Array(extents.reduce((a, b) => a * b));
  let state = 1;
  for (let i = 0; i < pixels.length; ++i) {
    const x = Math.floor((i % width) / size) - 2, y = (Math.floor((Math.floor(i / width) % height) / size) % 16) - 3;
    const glyph = glyphs[text[Math.floor(x / 6)]];
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    pixels[i] = (glyph?.[y]?.[x % 6] === "1" ? -2 : 2) + (0.1 * state) / 2 ** 32;
  }
  return pixels;
}

// A TensorProto of floats: the extents are field 1, the type is field 2, and the bytes are field 9.
function message(tensor) {
  const varint = (n) => {
    const bytes = [];
    for (; n > 127; n = Math.floor(n / 128)) bytes.push((n % 128) + 128);
    return [...bytes, n];
  };
  const dims = tensor.dims.flatMap((n) => [(1 << 3) | 0, ...varint(n)]);
  const bytes = Buffer.from(tensor.data.buffer, tensor.data.byteOffset, tensor.data.byteLength);
  return Buffer.concat([Buffer.from([...dims, (2 << 3) | 0, 1, (9 << 3) | 2, ...varint(bytes.length)]), bytes]);
}

// A file of NumPy.
function npy(tensor) {
  const text = `{'descr': '<f4', 'fortran_order': False, 'shape': (${tensor.dims.join(", ")},), }`;
  const header = text.padEnd(Math.ceil((text.length + 11) / 64) * 64 - 11) + "\n";
  const start = Buffer.from([0x93, ...Buffer.from("NUMPY"), 1, 0, header.length % 256, header.length >> 8]);
  return Buffer.concat([start, Buffer.from(header), Buffer.from(tensor.data.buffer)]);
}

const session = await InferenceSession.create(model, { intraOpNumThreads: 1, interOpNumThreads: 1 });
const [input] = session.inputNames, [output] = session.outputNames;
const given = { [input]: new Tensor("float32", images(), extents) };
const result = await session.run(given);
mkdirSync(join(folder, "test_data_set_0"), { recursive: true });
copyFileSync(model, join(folder, "model.onnx"));
writeFileSync(join(folder, "test_data_set_0/input_0.pb"), message(given[input]));
writeFileSync(join(folder, "input.npy"), npy(given[input]));
writeFileSync(join(folder, "test_data_set_0/output_0.pb"), message(result[output]));
const times = [];
for (let i = 0; i < Number(runs); ++i) {
  const start = performance.now();
  await session.run(given);
  times.push(performance.now() - start);
}
times.sort((a, b) => a - b);
if (times.length) console.log(`onnxruntime, 1 thread: median ${times[times.length >> 1].toFixed(1)} ms of ${times.length} runs`);

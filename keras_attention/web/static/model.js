// The LiteRT file as a function from arrays to arrays.

import {loadAndCompile, loadLiteRt, Tensor} from '@litertjs/core';

const SIGNATURE = 'serving_default';

export async function loadModel(about) {
  await loadLiteRt('./litert/wasm/');
  const model = await loadAndCompile(about.model.file, {accelerator: 'wasm'});
  const details = model.signatures[SIGNATURE].getInputDetails();
  const shapes = Object.fromEntries(details.map(({name, shape}) => [name, [...shape]]));

  /** Converts {name: typed array} of inputs to {name: typed array} of outputs. Shapes are fixed. */
  async function run(arrays) {
    const inputs = {}, values = {};
    for (const name in shapes) inputs[name] = new Tensor(arrays[name], shapes[name]);
    const outputs = await model.run(SIGNATURE, inputs);
    for (const name in outputs) values[name] = (await outputs[name].data()).slice();
    for (const tensors of [inputs, outputs]) {
      for (const name in tensors) tensors[name].delete();
    }
    return values;
  }

  return {run, shapes};
}

export function softmax(logits) {
  const highest = Math.max(...logits);
  const shares = Array.from(logits, x => Math.exp(x - highest));
  const sum = shares.reduce((a, b) => a + b, 0);
  return shares.map(x => x / sum);
}

/** Probabilities of independent labels. */
export function sigmoid(logits) {
  return Array.from(logits, x => 1 / (1 + Math.exp(-x)));
}

export function logSoftmax(logits) {
  let highest = -Infinity, sum = 0;
  for (const x of logits) if (x > highest) highest = x;
  for (const x of logits) sum += Math.exp(x - highest);
  const total = highest + Math.log(sum);
  return Float64Array.from(logits, x => x - total);
}

/** The index of the largest value. */
export function findBest(values) {
  let best = 0;
  for (let i = 1; i < values.length; i++) if (values[i] > values[best]) best = i;
  return best;
}

/** The mean over heads of attention weights (N, T, S): an array of T arrays of size S. */
export function averageHeads(attention, queries, keys) {
  const heads = attention.length / (queries * keys);
  const mean = Array.from({length: queries}, () => new Float64Array(keys));
  for (let n = 0; n < heads; n++) {
    for (let t = 0; t < queries; t++) {
      for (let s = 0; s < keys; s++) mean[t][s] += attention[(n * queries + t) * keys + s] / heads;
    }
  }
  return mean;
}

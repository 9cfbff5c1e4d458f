// Takes jobs from the Python process that opened this page, one after another, and answers each.

const ARRAYS = {float32: Float32Array, int32: Int32Array, uint8: Uint8Array};
const JOBS = {run, write, answer: answerTexts};

// The runtime may fail with nothing but a line on the console, and give garbage.
const said = [];
console.error = (...words) => said.push(words.map(String).join(' '));

/** Runs signatures of a file: the outputs of every call, and the time that it took. */
async function run({file, calls}) {
  const model = await guide.load(file);
  const outputs = [], milliseconds = [];
  for (const {signature, inputs} of calls) {
    const arrays = Object.fromEntries(
        Object.entries(inputs).map(([name, array]) => [name, unpack(array)]));
    const start = performance.now();
    const values = await guide.run(model, signature, arrays);
    milliseconds.push(performance.now() - start);
    outputs.push(pack(values, model.signatures[signature]));
  }
  model.delete();
  return {outputs, milliseconds};
}

/** The ids that a file writes, step by step. */
async function write({file, about, prompt}) {
  const model = await guide.load(file);
  const ids = [];
  for await (const id of guide.write(model, about, prompt)) ids.push(id);
  model.delete();
  return {ids};
}

/** What the program for texts says to each. */
async function answerTexts({file, name, method, texts}) {
  const model = await programs.openTextModel(file, name);
  const answers = [];
  for (const text of texts) answers.push(await model[method](text));
  return {answers};
}

function unpack({dtype, shape, data}) {
  return [new ARRAYS[dtype](Uint8Array.fromBase64(data).buffer), shape];
}

function pack(values, signature) {
  const arrays = {};
  for (const {name, dtype, shape} of signature.getOutputDetails()) {
    const {buffer, byteOffset, byteLength} = values[name];
    const data = new Uint8Array(buffer, byteOffset, byteLength).toBase64();
    arrays[name] = {dtype, shape: [...shape], data};
  }
  return arrays;
}

async function answer(job) {
  said.length = 0;
  try {
    return {...await JOBS[job.kind](job), said};
  } catch (error) {
    return {error: String(error?.stack ?? error), said};
  }
}

const guide = await import('/litert.js'), programs = await import('/texts.js');
for (;;) {
  const job = await (await fetch('/job')).json();
  await fetch('/answer', {method: 'POST', body: JSON.stringify(await answer(job))});
}

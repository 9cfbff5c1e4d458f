// Continues a text token by token, and shows the attention of each token.

import {averageHeads, findBest, softmax} from './model.js';
import {makeTokenizer} from './text.js';
import {make, makeForm, showTokens, takeTurns} from './view.js';

const MOST = 200;  // maximum number of new tokens

export async function show({about, model, say, root, given}) {
  const tokenizer = makeTokenizer(about.tokens), {length} = about;
  const answer = make('section'), turn = takeTurns(say);
  let stopped = true;
  const {form, field, button} = makeForm(
      {label: 'A beginning', value: given || about.example, action: 'Go on', rows: 6},
      text => stopped ? turn(() => ask(text, MOST, Number(heat.value))) : stopped = true);
  const heat = make('input', {type: 'number', min: 0, max: 2, step: 0.1, value: about.temperature});
  form.append(make('label', {className: 'short'}, 'Chance (0: none)', heat));
  root.replaceChildren(form, answer);
  const [name] = Object.keys(model.shapes);

  /** Runs the model on the last tokens of `ids`: logits of the next token, and attention. */
  async function read(ids) {
    const recent = ids.slice(-length), padded = new Int32Array(length);
    padded.set(recent);
    const {logits, attention} = await model.run({[name]: padded});
    const size = logits.length / length;
    return {recent, scores: logits.slice((recent.length - 1) * size, recent.length * size), attention};
  }

  function choose(scores, temperature) {
    scores[0] = -Infinity;  // never choose padding
    if (!temperature) return findBest(scores);
    const shares = softmax(scores.map(x => x / temperature));
    let left = Math.random();
    const drawn = shares.findIndex(share => (left -= share) < 0);
    return drawn < 0 ? findBest(scores) : drawn;
  }

  async function ask(text, count = MOST, temperature = 0) {
    const ids = tokenizer.encode(text);
    if (!ids.length) throw new Error('There is nothing to go on from.');
    stopped = false;
    button.textContent = 'Stop';
    let written = text;
    const start = ids.length, before = tokenizer.decode(ids).length;
    try {
      for (let k = 0; k < count && !stopped; k++) {
        const {scores} = await read(ids);
        const id = choose(scores, temperature);
        if (id == about.endTokenId) break;
        ids.push(id);
        written = text + tokenizer.decode(ids).slice(before);
        field.value = written;
        say(`${ids.length - start} tokens`);
        await new Promise(requestAnimationFrame);
      }
    } finally {
      stopped = true;
      button.textContent = 'Go on';
    }
    await explain(ids);
    return written;
  }

  async function explain(ids) {
    const {recent, attention} = await read(ids);
    const weights = averageHeads(attention, length, length);
    showTokens(answer, {
      tokens: recent.map(tokenizer.name),
      weights,
      hint: 'Choose a token to see what it looked at to say what follows it.',
    })(recent.length - 1);
  }

  await explain(tokenizer.encode(field.value));
  return (text, count, temperature) => turn(() => ask(text, count, temperature));
}

// Generates a text from a text with beam search, and shows the attention of each generated token.

import {averageHeads, logSoftmax} from './model.js';
import {makeTokenizer} from './text.js';
import {make, makeForm, showTokens, takeTurns} from './view.js';

export async function show({about, model, say, root, given}) {
  const source = makeTokenizer(about.source), target = makeTokenizer(about.target);
  const answer = make('section'), written = make('p', {id: 'written'}), turn = takeTurns(say);
  const {form, field} = makeForm(
      {label: 'A text', value: given || about.example, action: 'Write'}, text => turn(() => ask(text)));
  root.replaceChildren(form, written, answer);
  const {length, beam} = about;

  /** Runs the model, with a row for each beam: logits (B, T, V) and attention (B, N, T, S). */
  function read(ids, rows) {
    const source_ids = new Int32Array(beam * length), target_ids = new Int32Array(beam * length);
    for (let k = 0; k < beam; k++) {
      source_ids.set(ids, k * length);
      target_ids.set([about.startTokenId, ...(rows[k] ?? [])].slice(0, length), k * length);
    }
    return model.run({source_ids, target_ids});
  }

  /** Returns the log-probabilities of the next token after each of `rows`. */
  async function score(ids, rows) {
    const {logits} = await read(ids, rows);
    const size = logits.length / (beam * length);
    return rows.map((row, k) => {
      const at = (k * length + row.length) * size;
      return logSoftmax(logits.subarray(at, at + size));
    });
  }

  async function ask(text) {
    const ids = [...source.encode(text), about.endTokenId];
    if (ids.length == 1) throw new Error('There is no word in it.');
    if (ids.length > length) throw new Error(`${ids.length} tokens: this page takes ${length}.`);
    say('Writing …');
    const found = await searchBeams(rows => score(ids, rows), about, partial => {
      written.textContent = target.decode(partial);
    });
    const ended = found.filter(id => id != about.endTokenId), result = target.decode(ended);
    written.textContent = result;
    const {attention} = await read(ids, [found]);
    const heads = attention.length / (beam * length * length);
    const weights = averageHeads(attention.subarray(0, heads * length * length), length, length);
    showTokens(answer, {
      tokens: ended.map(target.name),
      keys: ids.map(source.name),
      weights,
      hint: 'Choose a token that was written to see what it looked at above.',
    })(0);
    say('');
    return result;
  }

  await turn(() => ask(field.value)).catch(() => {});  // the page already shows the error
  return text => turn(() => ask(text));
}

/**
 * Beam search: returns the most probable ids, including the end id.
 *
 * `score(rows)` returns the log-probabilities of the next token after each of `rows`, lists of ids.
 * Texts that end while they are among the `beam` best are complete, and leave the beam. The search
 * stops when no unfinished text can become better than the best complete text. A text is rated with
 * total / ((5 + tokens) / 6) ^ lengthPenalty.
 */
export async function searchBeams(
  score, {beam, length, endTokenId, lengthPenalty = 0}, tell = () => {}) {
  const rate = (total, tokens) => total / ((5 + tokens) / 6) ** lengthPenalty;
  let beams = [{ids: [], total: 0}], best = {ids: [], rated: -Infinity};
  const canWin = () => beams.length && rate(beams[0].total, length) > best.rated;
  for (let count = 0; count < length && canWin(); count++) {
    const rows = await score(beams.map(one => one.ids));
    const candidates = beams.flatMap(({ids, total}, k) =>
      findLargest(rows[k], 2 * beam).map(id => ({ids: [...ids, id], total: total + rows[k][id]})));
    candidates.sort((a, b) => b.total - a.total);
    candidates.length = Math.min(candidates.length, 2 * beam);
    const ends = one => one.ids.at(-1) == endTokenId;
    for (const {ids, total} of candidates.slice(0, beam).filter(ends)) {
      const rated = rate(total, ids.length);
      if (rated > best.rated) best = {ids, rated};
    }
    beams = candidates.filter(one => !ends(one)).slice(0, beam);
    tell(beams[0]?.ids ?? best.ids);
  }
  const cutOff = beams.length && rate(beams[0].total, beams[0].ids.length) > best.rated;
  return cutOff ? beams[0].ids : best.ids;
}

/** The indices of the `count` largest values, except the padding id 0. */
function findLargest(values, count) {
  const found = [];
  for (let i = 1; i < values.length; i++) {
    if (found.length == count && values[i] <= values[found.at(-1)]) continue;
    let k = found.length;
    while (k > 0 && values[i] > values[found[k - 1]]) k--;
    found.splice(k, 0, i);
    if (found.length > count) found.pop();
  }
  return found;
}

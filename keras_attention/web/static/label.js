// Predicts a tag for each word or labels for a text, and shows the attention of a clicked word.

import {averageHeads, findBest, sigmoid, softmax} from './model.js';
import {makeVocabulary, spell} from './text.js';
import {make, makeForm, showShares, showTokens, takeTurns} from './view.js';

export async function show({about, model, say, root, given}) {
  const find = makeVocabulary(about.words, about.lowercase);
  const findCharacter = about.characters && makeVocabulary(about.characters);
  const pattern = new RegExp(about.split, 'gu');
  const tagging = about.kind == 'sequence_labeler';
  const answer = make('section'), shares = make('section'), turn = takeTurns(say);
  const {form, field} = makeForm({
    label: tagging ? 'A sentence' : 'A text',
    value: given || about.example,
    action: tagging ? 'Tag' : 'Label',
  }, text => turn(() => ask(text)));
  root.replaceChildren(form, shares, answer);

  function makeInputs(words) {
    const ids = new Int32Array(about.length);
    words.forEach((word, i) => { ids[i] = find(word); });
    const inputs = Object.fromEntries(Object.keys(model.shapes).map(name => [name, ids]));
    if (findCharacter) {
      inputs.character_ids = new Int32Array(about.length * about.wordLength);
      words.forEach((word, i) => inputs.character_ids.set(
          spell(word, findCharacter, about.wordLength), i * about.wordLength));
    }
    return inputs;
  }

  async function ask(text) {
    const words = text.match(pattern) ?? [];
    if (!words.length) throw new Error('There is no word in it.');
    if (words.length > about.length && tagging) {
      throw new Error(`${words.length} words: this page takes ${about.length}.`);
    }
    words.length = Math.min(words.length, about.length);
    say('Thinking …');
    const {logits, attention} = await model.run(makeInputs(words));
    const size = Math.sqrt(attention.length / countHeads(attention, about.length));
    const weights = averageHeads(attention, size, size);
    const first = size - about.length;  // 1 if there is a class token before the words
    const tokens = [...new Array(first).fill('<class>'), ...words];
    const hint = 'Choose a word to see what it looked at.';
    let found;
    if (tagging) {
      const rows = words.map((_, i) => softmax(logits.slice(i * about.labels.length, (i + 1) * about.labels.length)));
      found = words.map((token, i) => {
        const best = findBest(rows[i]);
        return {token, tag: about.labels[best], probability: rows[i][best]};
      });
      showTokens(answer, {tokens, notes: found.map(one => one.tag), weights, hint})(0);
    } else if (about.thresholds) {
      const all = sigmoid(logits);
      found = about.labels.map((label, i) => ({label, probability: all[i]}))
          .filter((_, i) => all[i] > about.thresholds[i])
          .sort((a, b) => b.probability - a.probability);
      const labels = found.length ? found.map(one => one.label) : ['no label'];
      showShares(shares, labels, found.length ? found.map(one => one.probability) : [0], labels.length);
      showTokens(answer, {tokens, weights, hint})(0);
    } else {
      const all = softmax(logits), best = findBest(all);
      found = {label: about.labels[best], probability: all[best]};
      showShares(shares, about.labels, all);
      showTokens(answer, {tokens, weights, hint})(0);
    }
    say('');
    return found;
  }

  await turn(() => ask(field.value)).catch(() => {});  // the page already shows the error
  return text => turn(() => ask(text));
}

/** The number of heads N in weights (N, T, T). T is `length`, plus 1 with a class token. */
function countHeads(attention, length) {
  const side = [length, length + 1].find(size => attention.length % (size * size) == 0);
  return attention.length / (side * side);
}

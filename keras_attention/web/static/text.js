// Converts text to ids and back, in the same way as the preprocessors of the Python package.

const UNKNOWN = 1;

/** Returns a function from words to ids. */
export function makeVocabulary(entries, lowercase = false) {
  const ids = new Map(entries.map((entry, i) => [entry, i]));
  return word => ids.get(lowercase ? word.toLowerCase() : word) ?? UNKNOWN;
}

/** The ids of the characters of a word. A long word keeps only its first and last characters. */
export function spell(word, find, length) {
  let characters = [...word];
  if (characters.length > length) {
    const end = Math.floor(length / 2);
    characters = [...characters.slice(0, length - end), ...characters.slice(-end)];
  }
  const ids = new Int32Array(length);
  characters.forEach((character, i) => { ids[i] = find(character); });
  return ids;
}

/** The functions {encode, decode, name} of a tokenizer that page.json describes. */
export function makeTokenizer(about) {
  return about.kind == 'characters' ? makeCharacters(about.entries) : makeUnigram(about);
}

function makeCharacters(entries) {
  const find = makeVocabulary(entries);
  return {
    encode: text => Array.from(text, find),
    decode: ids => ids.map(i => i == UNKNOWN ? '\ufffd' : i < 4 ? '' : entries[i]).join(''),
    name: i => ({' ': '␣', '\n': '⏎'})[entries[i]] ?? entries[i],
  };
}

/** The unigram model of SentencePiece: finds the most probable pieces with Viterbi (Kudo, 2018). */
function makeUnigram({pieces, scores, ordinary, lowercase, unknown}) {
  const ids = new Map(), SPACE = '▁';
  let longest = 1, least = Infinity;
  pieces.forEach((piece, i) => {
    if (!ordinary[i]) return;
    ids.set(piece, i);
    longest = Math.max(longest, [...piece].length);
    least = Math.min(least, scores[i]);
  });

  function normalize(text) {
    text = text.normalize('NFKC').replace(/[\s\u200b\u200e\u200f\u2028\u2029\ufeff]+/gu, ' ').trim();
    if (lowercase) text = text.toLowerCase();
    return text && SPACE + text.replaceAll(' ', SPACE);
  }

  function encode(text) {
    const characters = [...normalize(text)], count = characters.length;
    const best = [{score: 0}];
    for (let end = 1; end <= count; end++) {
      for (let start = Math.max(0, end - longest); start < end; start++) {
        let id = ids.get(characters.slice(start, end).join(''));
        if (id === undefined && end - start > 1) continue;
        const score = best[start].score + (id === undefined ? least - 10 : scores[id]);
        if (!best[end] || score > best[end].score) best[end] = {score, start, id: id ?? unknown};
      }
    }
    const found = [];
    for (let end = count; end > 0; end = best[end].start) found.unshift(best[end].id);
    return found.filter((id, i) => id != unknown || found[i - 1] != unknown);
  }

  return {
    encode,
    decode: found => found.filter(i => i > 3 || i == unknown)
        .map(i => i == unknown ? ' \u2047 ' : pieces[i]).join('').replaceAll(SPACE, ' ').replace(/^ /, ''),
    name: i => pieces[i],
  };
}

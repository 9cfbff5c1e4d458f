// The elements of the pages: forms, tokens with their attention, and tables of probabilities.

/** Makes an element with properties and children. */
export function make(name, properties = {}, ...children) {
  const element = Object.assign(document.createElement(name), properties);
  element.append(...children);
  return element;
}

/** Makes a form with a text field, which calls `submit(text)`. */
export function makeForm({label, value, action, rows}, submit) {
  const field = rows ? make('textarea', {value, rows}) : make('input', {value});
  field.id = 'input';
  const button = make('button', {className: 'main', textContent: action});
  const form = make('form', {}, make('label', {}, label, field), button);
  form.addEventListener('submit', event => {
    event.preventDefault();
    submit(field.value);
  });
  return {form, field, button};
}

/**
 * Shows rows of tokens. When token i in the row of queries is clicked, its attention weights,
 * `weights[i]`, are shown as colors of the tokens in the row of keys (or in the same row if there
 * are no keys).
 */
export function showTokens(root, {tokens, notes = [], keys, weights, hint}) {
  const said = make('p', {className: 'hint', textContent: hint});
  const buttons = tokens.map((token, i) => {
    const button = make('button', {type: 'button'}, token);
    if (notes[i]) button.append(make('small', {textContent: notes[i]}));
    button.setAttribute('aria-pressed', 'false');
    button.addEventListener('click', () => choose(i));
    return button;
  });
  const seen = keys ? keys.map(key => make('span', {}, key)) : buttons;

  function choose(i) {
    const row = weights[i].slice(0, seen.length), most = Math.max(...row) || 1;
    buttons.forEach((button, k) => button.setAttribute('aria-pressed', String(k == i)));
    seen.forEach((element, k) => {
      element.style.setProperty('--seen', (0.75 * row[k] / most).toFixed(3));
      element.title = `${(100 * row[k]).toFixed(1)} %`;
    });
    const order = [...row.keys()].sort((a, b) => row[b] - row[a]).slice(0, 3);
    const names = keys ?? tokens;
    said.textContent = `“${tokens[i]}” looked at ` +
        order.map(k => `“${names[k]}” (${(100 * row[k]).toFixed(0)} %)`).join(', ') + '.';
  }

  const rows = [make('div', {className: 'tokens', id: 'tokens'}, ...buttons)];
  if (keys) rows.unshift(make('div', {className: 'tokens', id: 'keys'}, ...seen));
  root.replaceChildren(...rows, said);
  return choose;
}

/** Shows a table of labels and their probabilities. */
export function showShares(root, labels, shares, count = 3) {
  const order = [...shares.keys()].sort((a, b) => shares[b] - shares[a]).slice(0, count);
  const rows = order.map(i => make('tr', {},
      make('th', {scope: 'row', textContent: labels[i]}),
      make('td', {}, make('meter', {value: shares[i], title: labels[i]})),
      make('td', {textContent: `${(100 * shares[i]).toFixed(1)} %`})));
  root.replaceChildren(make('table', {id: 'shares'}, make('tbody', {}, ...rows)));
}

/** Runs one task after another, and shows errors. */
export function takeTurns(say) {
  let last = Promise.resolve();
  return work => {
    last = last.then(work, work);
    last.catch(error => say(error.message ?? String(error)));
    return last;
  };
}

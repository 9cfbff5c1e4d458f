// Classifies an image from a file, or a drawing if the model reads grayscale images, and shows the
// patches that the model attended to.

import {averageHeads, findBest, softmax} from './model.js';
import {make, showShares, takeTurns} from './view.js';

const FINE = 4;  // number of dots of the drawing along each side of a model pixel
const SIZE = 320;  // size on the screen in pixels

export async function show({about, model, say, root}) {
  const [height, width] = about.imageSize;
  const canvas = make('canvas', {width: width * FINE, height: height * FINE, id: 'canvas'});
  canvas.style.width = `${SIZE}px`;
  canvas.setAttribute('role', 'img');
  const canDraw = about.channels == 1;
  canvas.setAttribute('aria-label', canDraw ? 'Drawing. Arrow keys move, space draws.' : 'The image.');
  const looked = make('canvas', {width, height, id: 'looked'});
  looked.style.width = `${SIZE / 2}px`;
  looked.setAttribute('role', 'img');
  const shares = make('section'), turn = takeTurns(say);
  const clear = make('button', {type: 'button', textContent: 'Clear'});
  const file = make('input', {type: 'file', accept: 'image/*'});
  const hint = make('p', {className: 'hint', textContent: canDraw
      ? 'Draw with the mouse or a finger, or with arrow keys and space; or choose an image.'
      : 'Choose an image.'});
  const choose = make('label', {}, 'An image', file);
  const form = canDraw ? make('form', {}, clear, choose) : make('form', {}, choose);
  const view = make('div', {className: 'side'}, canvas,
      make('div', {}, shares, make('p', {className: 'hint', textContent: 'What was looked at:'}), looked));
  root.replaceChildren(hint, ...(canDraw ? [view, form] : [form, view]));
  const pen = canvas.getContext('2d', {willReadFrequently: true});
  const wide = Math.max(1, Math.round(Math.min(width, height) * FINE / 11));
  let last = null, cursor = [canvas.width / 2, canvas.height / 3];

  const line = (from, to) => {
    Object.assign(pen, {strokeStyle: '#fff', lineWidth: wide, lineCap: 'round', lineJoin: 'round'});
    pen.beginPath();
    pen.moveTo(...from);
    pen.lineTo(to[0] + 0.01, to[1]);
    pen.stroke();
  };
  const place = event => [
    event.offsetX * canvas.width / canvas.clientWidth,
    event.offsetY * canvas.height / canvas.clientHeight,
  ];
  const answer = () => turn(() => ask(readCanvas()));
  if (canDraw) letDraw();
  file.addEventListener('change', async () => {
    await showPicture(file.files[0]);
    answer();
  });

  async function showPicture(blob) {
    erase();
    const picture = await createImageBitmap(blob, {imageOrientation: 'from-image'});
    // An image of the model's size is not changed. Each pixel is FINE dots wide.
    pen.imageSmoothingEnabled = picture.width != width || picture.height != height;
    pen.drawImage(picture, 0, 0, canvas.width, canvas.height);
  }

  /** Draws with the mouse, a finger or the arrow keys. */
  function letDraw() {
    canvas.tabIndex = 0;
    clear.addEventListener('click', () => { erase(); answer(); });
    canvas.addEventListener('pointerdown', event => {
      canvas.setPointerCapture(event.pointerId);
      last = place(event);
      line(last, last);
    });
    canvas.addEventListener('pointermove', event => {
      if (!last) return;
      line(last, last = place(event));
    });
    canvas.addEventListener('pointerup', () => { last = null; answer(); });
    canvas.addEventListener('keydown', event => {
      const step = {ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1]}[event.key];
      if (step) {
        const next = cursor.map((x, i) => x + 2 * step[i]);
        if (event.shiftKey) line(cursor, next);
        cursor = next;
        hint.textContent = `At column ${Math.round(cursor[0])}, row ${Math.round(cursor[1])}; space draws, Shift draws along.`;
      } else if (event.key == ' ') {
        line(cursor, cursor);
      } else {
        return;
      }
      event.preventDefault();
      answer();
    });
  }

  function erase() {
    Object.assign(pen, {fillStyle: '#000'});
    pen.fillRect(0, 0, canvas.width, canvas.height);
  }

  /** Returns pixels (height, width, channels) from 0 to 1, each the mean of its dots. */
  function readCanvas() {
    const {data} = pen.getImageData(0, 0, canvas.width, canvas.height);
    const pixels = new Float32Array(height * width * about.channels);
    for (let y = 0; y < canvas.height; y++) {
      for (let x = 0; x < canvas.width; x++) {
        const from = 4 * (y * canvas.width + x);
        const to = (Math.floor(y / FINE) * width + Math.floor(x / FINE)) * about.channels;
        const [r, g, b] = data.slice(from, from + 3);
        const values = about.channels == 1 ? [0.299 * r + 0.587 * g + 0.114 * b] : [r, g, b];
        values.forEach((value, c) => { pixels[to + c] += value / 255 / FINE ** 2; });
      }
    }
    return pixels;
  }

  async function ask(pixels) {
    const [name] = Object.keys(model.shapes);
    const {logits, attention} = await model.run({[name]: Float32Array.from(pixels)});
    const all = softmax(logits), best = findBest(all);
    showShares(shares, about.labels, all);
    showLooked(pixels, attention);
    say('');
    return {label: about.labels[best], probability: all[best]};
  }

  /** Draws attention over the image: that of the class token, or the mean over all patches. */
  function showLooked(pixels, attention) {
    const {queries, keys, rows, columns} = about.attention;
    const weights = averageHeads(attention, queries, keys);
    const before = keys - rows * columns;
    const chosen = before || queries == 1 ? [weights[0]] : weights;
    const mean = Float64Array.from({length: rows * columns}, (_, k) =>
      chosen.reduce((sum, row) => sum + row[before + k], 0) / chosen.length);
    const most = Math.max(...mean), paint = looked.getContext('2d');
    const image = paint.createImageData(width, height);
    for (let y = 0; y < height; y++) {
      for (let x = 0; x < width; x++) {
        const share = mean[Math.floor(y * rows / height) * columns + Math.floor(x * columns / width)] / most;
        const at = 4 * (y * width + x), c = (y * width + x) * about.channels;
        for (let i = 0; i < 3; i++) {
          const value = 255 * pixels[c + (about.channels == 1 ? 0 : i)];
          image.data[at + i] = value * (1 - 0.6 * share) + [255, 140, 0][i] * 0.6 * share;
        }
        image.data[at + 3] = 255;
      }
    }
    paint.putImageData(image, 0, 0);
    looked.setAttribute('aria-label', `Brightest where it looked most: patch ${findBest(mean) + 1} of ${mean.length}`);
  }

  erase();
  if (about.example) {
    await showPicture(await (await fetch(about.example)).blob());
    await ask(readCanvas());
  }
  return pixels => turn(() => ask(pixels));
}

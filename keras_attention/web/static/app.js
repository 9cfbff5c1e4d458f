// Reads page.json, loads the model, and passes both to the module for this kind of task.

import {loadModel} from './model.js';

const MODULES = {
  sequence_labeler: './label.js',
  text_classifier: './label.js',
  multi_label_classifier: './label.js',
  vision_transformer: './draw.js',
  seq2seq_transformer: './translate.js',
  seq2seq_recurrent: './translate.js',
  causal_language_model: './write.js',
};

const status = document.getElementById('status');
const say = text => { status.textContent = text; };

async function start() {
  const about = await (await fetch('page.json')).json();
  document.title = document.getElementById('title').textContent = about.title;
  say('Loading the model …');
  const [model, {show}] = await Promise.all([loadModel(about), import(MODULES[about.kind])]);
  // The text after # in the address is the first input, so that links to results are possible.
  const given = decodeURIComponent(location.hash.slice(1));
  const ask = await show({about, model, say, root: document.getElementById('page'), given});
  if (status.textContent.startsWith('Loading')) say('Ready.');
  return ask;
}

/** A function that returns the same predictions as `predict`, which tests call. */
window.ready = start().catch(error => {
  say(`This page cannot run here: ${error.message ?? error}`);
  throw error;
});

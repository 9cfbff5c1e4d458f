// Reads page.json, loads the model, and hands both to the module of its kind.

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
  // What follows # in the address is the first input, so that an answer can be linked to.
  const given = decodeURIComponent(location.hash.slice(1));
  const ask = await show({about, model, say, root: document.getElementById('page'), given});
  if (status.textContent.startsWith('Loading')) say('Ready.');
  return ask;
}

/** The function that answers an input as `predict` does; tests call it. */
window.ready = start().catch(error => {
  say(`This page cannot run here: ${error.message ?? error}`);
  throw error;
});

"""Limits on the pieces of a sentence and on the seconds of a recording."""

import numpy as np

import keras_attention as ka

PIECES = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "dog", "##s"]


def make_tokenizer(max_length=None):
    return ka.data.PretrainedTokenizer.from_vocabulary(
        PIECES, lowercase=True, max_length=max_length
    )


def test_sentence_with_too_many_pieces_is_left_out():
    preprocessor = ka.data.TaggerPreprocessor(make_tokenizer(max_length=5), ["NOUN"])
    task = ka.tasks.SequenceLabeler(None, preprocessor)
    one, two = (ka.data.Sentence(("dogs",) * n, ("NOUN",) * n) for n in (1, 2))
    assert task.select([one, two], "The examples") == [one]  # [CLS] dog ##s [SEP]
    assert task.describe_scored([one, two]) == (
        "sentences of more than 512 tokens or 5 pieces of words are not scored: 1 of 2",
    )


def test_too_long_recording_is_left_out():
    preprocessor = ka.data.SpeechTextPreprocessor(
        make_tokenizer(),
        sampling_rate=100,
        seconds=0.5,
        end_token_ids=(3,),
        prompt=ka.data.SpeechPrompt(begin_token_id=2, no_timestamps_id=2),
    )
    task = ka.tasks.SpeechToText(None, preprocessor, writing=ka.tasks.Writing(max_new_tokens=3))
    short, long = (ka.data.Recording(np.zeros(n, "float32"), "dog") for n in (50, 51))
    wordy = short._replace(text="dogs dogs")
    every = [short, long, wordy]
    assert task.select(every, "The examples", training=True) == [short]
    assert task.select(every, "The examples") == [short, wordy]
    data = ka.data.Recording.collect(every, [], [long], dev_fraction=0, sampling_rate=100)
    assert task.describe_data(data) == (
        "recordings of more than 0.5 seconds or 3 tokens to write are left out: 2 of train, "
        "1 of test",
    )

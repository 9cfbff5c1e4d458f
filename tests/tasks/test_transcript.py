"""Subtitles, and segments made from words."""

import pytest

from keras_attention.tasks.transcript import Segment, Transcript, Word, format_time, group_words


def say(*times):
    return [Word(f"w{k}", start, end, 1.0) for k, (start, end) in enumerate(times)]


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "00:00:00,000"),
        (-0.01, "00:00:00,000"),
        (59.9996, "00:01:00,000"),
        (3723.4567, "01:02:03,457"),
        (360000, "100:00:00,000"),
    ],
)
def test_times_of_subtitles(seconds, text):
    assert format_time(seconds) == text


def test_subtitles_are_numbered_blocks():
    transcript = Transcript([Segment("One.", 0.0, 1.5, []), Segment("Two.", 2.0, 3.25, [])])
    assert transcript.text == "One. Two." and transcript.words == []
    assert transcript.format_srt() == (
        "1\n00:00:00,000 --> 00:00:01,500\nOne.\n\n2\n00:00:02,000 --> 00:00:03,250\nTwo.\n"
    )
    assert Transcript([]).format_srt() == Transcript([]).text == ""


def test_segments_end_at_pauses_and_after_many_words():
    first = say((0, 0.5), (1.25, 1.5), (2.5, 3))
    assert [segment.text for segment in group_words(first)] == ["w0 w1", "w2"]
    assert group_words(first)[0][1:3] == (0, 1.5)
    many = say(*((k / 2, k / 2 + 0.4) for k in range(30)))
    assert [len(segment.words) for segment in group_words(many)] == [14, 14, 2]
    assert Transcript(group_words(many)).words == many and group_words([]) == []

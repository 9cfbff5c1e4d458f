"""`Transcript`: the text of a recording, with the times of its segments and words."""

import dataclasses
import typing

MOST_GAP, MOST_WORDS = 0.8, 14  # seconds between words, and words, of a segment made from words


class Word(typing.NamedTuple):
    """A word of a recording.

    Attributes:
        text: str, the word with its punctuation, without spaces around it.
        start, end: floats, when the word begins and ends, in seconds from the beginning.
        probability: float, the mean probability of its tokens.
    """

    text: str
    start: float
    end: float
    probability: float


class Segment(typing.NamedTuple):
    """A phrase or sentence of a recording, such as a subtitle.

    Attributes:
        text: str.
        start, end: floats, in seconds from the beginning of the recording.
        words: list of `Word`. Empty if the times of words were not requested.
    """

    text: str
    start: float
    end: float
    words: list


@dataclasses.dataclass(frozen=True)
class Transcript:
    """The text of a recording, with times.

    Attributes:
        segments: list of `Segment`, in the order of the recording. Empty if nobody speaks.
        language: str, the code of the spoken language, or None for a model with one language.

    ```python
    import keras_attention as ka

    word = ka.tasks.Word("Hello.", 0.5, 1.25, 0.9)
    transcript = ka.tasks.Transcript([ka.tasks.Segment("Hello.", 0.5, 1.25, [word])])
    assert transcript.text == "Hello."
    assert transcript.format_srt().splitlines()[1] == "00:00:00,500 --> 00:00:01,250"
    ```
    """

    segments: list
    language: str | None = None

    @property
    def text(self):
        """str, the texts of all segments, separated by spaces."""
        return " ".join(segment.text for segment in self.segments)

    @property
    def words(self):
        """list of `Word`, the words of all segments."""
        return [word for segment in self.segments for word in segment.words]

    def format_srt(self):
        """Return the segments as SubRip subtitles, the content of an `.srt` file, a str."""
        blocks = [
            f"{number}\n{format_time(one.start)} --> {format_time(one.end)}\n{one.text}\n"
            for number, one in enumerate(self.segments, start=1)
        ]
        return "\n".join(blocks)


def format_time(seconds):
    """Format seconds as SubRip does: `01:02:03,450`."""
    milliseconds = max(0, round(seconds * 1000))
    minutes, milliseconds = divmod(milliseconds, 60_000)
    hours, minutes = divmod(minutes, 60)
    seconds, milliseconds = divmod(milliseconds, 1000)
    return f"{hours:02}:{minutes:02}:{seconds:02},{milliseconds:03}"


def group_words(words):
    """Group a list of `Word` into a list of `Segment`.

    A segment ends before a pause of more than 0.8 seconds, and after 14 words.
    """
    groups = []
    for word in words:
        if (
            not groups
            or len(groups[-1]) == MOST_WORDS
            or word.start - groups[-1][-1].end > MOST_GAP
        ):
            groups.append([])
        groups[-1].append(word)
    return [
        Segment(" ".join(word.text for word in group), group[0].start, group[-1].end, group)
        for group in groups
    ]

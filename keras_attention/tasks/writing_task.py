"""`WritingTask`: the base class of tasks with an encoder-decoder that generates text."""

import numpy as np

from keras_attention.core.lazy import generation
from keras_attention.tasks.generators import FileGenerator, ModelGenerator, get_generation_options
from keras_attention.tasks.interface import draw_map
from keras_attention.tasks.task import Task
from keras_attention.tasks.writing import Writing


class WritingTask(Task):
    """Base class of tasks with an encoder-decoder that generates text with beam search.

    The settings of the search are in the attribute `writing`, a `ka.tasks.Writing`.
    """

    score_names = ()  # valid values of `score`. The first is the default.
    default_writing = Writing()
    finishing_seconds = 138.0  # three files with three signatures each

    def __init__(self, model, preprocessor, *, writing=None, score=None, builder=None):
        super().__init__(model, preprocessor, builder=builder)
        self.writing = self.default_writing if writing is None else writing
        self.score = self.score_names[0] if score is None else score
        if self.score not in self.score_names:
            expected = ", ".join(self.score_names)
            raise ValueError(f"{type(self).__name__}(score={score!r}): expected one of {expected}.")

    @classmethod
    def read_settings(cls, fields):
        return {
            "writing": Writing.read(fields.object("writing")),
            "score": fields.one_of("score", cls.score_names),
        }

    @property
    def settings(self):
        return {"score": self.score, "writing": self.writing.describe(self.preprocessor)}

    def open_runner(self, path):
        return FileGenerator(path, self.metadata)

    def wrap_model(self, model, path=None):
        return ModelGenerator(model, self.metadata, path)

    def draw_writing(self, inputs, name_keys, caption, path):
        """Generate a text, and plot the attention of its tokens to the source.

        Args:
            inputs: inputs of the encoder for one example, an array or a dict of arrays.
            name_keys: function from the number of source positions to a list of labels for them.
            caption: str, the text after the name of the layer in the title of the figure.
            path: path for saving the figure. None does not save it.

        Returns:
            `AttentionMaps`, the attention weights of all layers and the figure.
        """
        maps, layer, queries = self.record_writing(inputs)
        keys = name_keys(maps[layer].shape[-1])
        return draw_map(maps, queries, keys, caption, path, layer=layer)

    def record_writing(self, inputs):
        """Generate a text for one example with greedy search, and record the attention weights.

        `inputs` are inputs of the encoder, an array or a dict of arrays.

        Returns:
            A tuple of three: a dict from the path of each attention layer to its weights, the path
            of the last cross-attention layer, and the list of generated tokens.
        """
        result, ids = self.write_greedily(inputs, return_attention=True)
        queries = self.preprocessor.target.pieces(ids)
        return dict(result.attention), find_last_of_source(result.attention), queries

    def write_greedily(self, inputs, **options):
        """Generate a text for one example with greedy search.

        Args:
            inputs: inputs of the encoder, an array or a dict of arrays.
            **options: arguments of `ka.generation.generate` with which it returns a result.

        Returns:
            A tuple of the result, and the ids up to the first end of a text, an array.
        """
        options |= get_generation_options(self.metadata) | {"sampler": "greedy"}
        del options["generate"]
        result = generation.generate(self.model, inputs, **options)
        ends = np.flatnonzero(np.isin(result.ids[0], self.preprocessor.end_token_id))
        return result, result.ids[0][: 1 + int(ends[0]) if ends.size else None]


def find_last_of_source(maps):
    """Return the path of the last layer that attends to the source.

    This is the last layer with "cross_attention" in its path, or else the last layer in `maps`, a
    dict from paths to weights.
    """
    crossing = [path for path in maps if "cross_attention" in path] or list(maps)
    return crossing[-1]

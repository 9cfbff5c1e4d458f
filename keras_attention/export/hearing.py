"""`Hearing`: a file that recognizes speech while someone speaks, with the signatures `hear`."""

import dataclasses

import numpy as np
from keras import ops

from keras_attention.core import checks, scope
from keras_attention.export.checks.cases import Case, run_model
from keras_attention.export.checks.report import Tensor
from keras_attention.export.endpoint import Endpoint
from keras_attention.export.exportable import CheckedEndpoint, Exportable
from keras_attention.export.precision import check_stateless, convert_to_float32
from keras_attention.generation.cache import cache_shapes, make_empty_cache
from keras_attention.generation.speech_stream import SpeechStream

ROWS, INDEX, LAST, LABELS, LOGITS = "rows", "index", "last_label", "labels", "logits"


@dataclasses.dataclass(frozen=True)
class Hearing:
    """The settings for a file that recognizes speech while someone speaks.

    This is the argument `generate` of `to_litert` for models of
    `ka.models.speech_recognizer(..., chunk_size=...)`. The file has two signatures. All their
    tensors except sound and labels are the state, which an app passes on without reading it:

    - `start`: `rows` int32 (), the number B of speakers, becomes the state of a new utterance.
    - `hear`: a piece of sound and the state become `labels` int32 (B, T), `logits` (B, T, V) and
      the next state. A label is an id, or 0 if nothing new is heard at its vector.

    A piece has `piece` frames of features, or samples, and the next piece begins `step` later. Both
    numbers are in the entry `generation` of the file in `manifest.json`. The last piece of an
    utterance may be shorter.

    Args:
        max_length: int, the maximum number of vectors in an utterance. 1024 vectors of 40 ms are 41
            seconds.

    ```python
    import tempfile

    import numpy as np
    import keras_attention as ka

    size = dict(num_layers=1, num_heads=2, hidden_dim=16, intermediate_dim=32, kernel_size=5)
    sound = ka.models.SpeechEmbedding(num_mel_bins=12)
    model = ka.models.speech_recognizer(9, chunk_size=2, embedding=sound, **size)
    features = np.random.normal(size=(1, 24, 12)).astype("float32")
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/live.tflite"
        ka.export.to_litert(model, path, generate=ka.export.Hearing(max_length=32))
        start, hear = ka.export.load(path, "start"), ka.export.load(path, "hear")
    state = start({"rows": np.array(1, "int32")})
    for piece in np.split(features, 3, axis=1):  # chunk_size * subsampling frames
        state = hear({"features": piece, **state})
        labels, logits = state.pop("labels"), state.pop("logits")
    assert labels.shape == (1, 2) and logits.shape == (1, 2, 9)
    ```
    """

    max_length: int = 1024

    def __post_init__(self):
        checks.check_whole_numbers(self, "max_length")


@dataclasses.dataclass(frozen=True)
class HearingPlan:
    """A streaming recognizer with the settings of a `Hearing`.

    Attributes:
        stream: `SpeechStream`, which has the parts of the model.
        max_length: int, the maximum number of vectors in an utterance.
        batch_size: int, a fixed number of speakers, or None for any.
    """

    stream: SpeechStream
    max_length: int
    batch_size: int | None = None
    examples = ()  # for a decoder: texts to compare it on

    @property
    def step(self):
        """int, how many frames or samples later the next piece begins."""
        spectrogram = self.stream.spectrogram
        return self.stream.chunk_frames * (spectrogram.sequence_stride if spectrogram else 1)

    @property
    def piece(self):
        """int, the number of frames or samples in a piece."""
        spectrogram = self.stream.spectrogram
        if spectrogram is None:
            return self.step
        return self.step - spectrogram.sequence_stride + spectrogram.sequence_length

    def describe(self, endpoints):
        """Return the entry `generation` of the report, a dict.

        `endpoints` are the endpoints of the file.
        """
        return {"piece": self.piece, "step": self.step, "max_length": self.max_length}

    @property
    def sound(self):
        """`Tensor`, the input with a piece of sound."""
        if self.stream.spectrogram is not None:
            return Tensor("waveform", (self.batch_size, None), "float32")
        features = self.stream.encoder.input.shape[-1]
        return Tensor("features", (self.batch_size, None, features), "float32")

    @property
    def state(self):
        """tuple of `Tensor`, the state that `start` returns and `hear` changes."""
        shapes = cache_shapes(self.stream.cache_spec, self.max_length)
        cache = [Tensor(n, (self.batch_size, *shape), kind) for n, (shape, kind) in shapes.items()]
        return (*cache, Tensor(INDEX, (), "int32"), Tensor(LAST, (self.batch_size,), "int32"))

    def begin(self, tensors):
        """Return the state of a new utterance. `tensors` is the dict of inputs of `start`."""
        rows = tensors[ROWS] if self.batch_size is None else self.batch_size
        zero = ops.minimum(ops.cast(tensors[ROWS], "int32"), 0)  # runtimes lose constant outputs
        cache = make_empty_cache(self.stream.cache_spec, rows, self.max_length)
        cache = {name: x + ops.cast(zero, x.dtype) for name, x in cache.items()}
        return cache | {INDEX: zero, LAST: ops.zeros((rows,), dtype="int32") + zero}

    def hear(self, tensors):
        """Return labels, logits and the next state. `tensors` is the dict of inputs of `hear`."""
        features = tensors[self.sound.name]
        if self.stream.spectrogram is not None:
            features = self.stream.spectrogram(features)
        names = [x.name for x in self.state if x.name not in (INDEX, LAST)]
        index = tensors[INDEX]
        with scope.Decoding({name: tensors[name] for name in names}, index) as decoding:
            logits = self.stream.encoder(features, training=False)
        best = ops.cast(ops.top_k(logits, 1)[1][..., 0], "int32")
        before = ops.concatenate([ops.expand_dims(tensors[LAST], 1), best[:, :-1]], axis=1)
        state = {name: decoding.cache[name] for name in names}
        state |= {INDEX: index + ops.shape(logits)[1], LAST: best[:, -1]}
        return state | {LABELS: ops.where(best == before, 0, best), LOGITS: logits}


def make_hearing(model, settings, batch_size=None):
    """Return the `Exportable` of a streaming recognizer.

    Args:
        model: functional `keras.Model` of `speech_recognizer(..., chunk_size=...)`.
        settings: `Hearing`.
        batch_size: int, a fixed number of speakers, or None for any.
    """
    check_stateless(model)
    exported = convert_to_float32(model)
    plan = HearingPlan(SpeechStream(exported, settings.max_length), settings.max_length, batch_size)
    names = tuple(tensor.name for tensor in plan.state)
    cache = tuple(name for name in names if name not in (INDEX, LAST))
    rows = (Tensor(ROWS, (), "int32"),)
    start = Endpoint("start", rows, {}, names, plan.begin, cache=cache)
    inputs = (plan.sound, *plan.state)
    outputs = (LABELS, LOGITS, *names)
    hear = Endpoint("hear", inputs, {}, outputs, plan.hear, cache=cache)
    cases = make_cases(plan, start, hear)
    checked = (CheckedEndpoint(start, cases[0]), CheckedEndpoint(hear, cases[1]))
    return Exportable(exported, checked, [], plan)


def make_cases(plan, start, hear):
    """Return the test cases of `start` and of `hear`: two lists of `Case`.

    Random sound is heard in two whole pieces and a shorter one. `plan` is the `HearingPlan`, and
    `start` and `hear` are the endpoints.
    """
    random, starts, pieces = np.random.default_rng(0), [], []
    for rows in {1, 2} if plan.batch_size is None else {plan.batch_size}:
        inputs = {ROWS: np.array(rows, "int32")}
        state = run_model(start, inputs)
        starts.append(Case(inputs, state, cache=start.cache))
        for length in (plan.piece, plan.piece, plan.piece - plan.step // 2):
            shape = (rows, length, *plan.sound.shape[2:])
            sound = random.normal(size=shape, scale=0.5).astype("float32")
            inputs = {plan.sound.name: sound, **state}
            results = run_model(hear, inputs)
            pieces.append(Case(inputs, results, cache=hear.cache))
            state = {name: results[name] for name in state}
    return starts, pieces

"""Registered names, and how Keras finds a class of ours that is not imported yet.

Importing the package imports no layer, and not even Keras. Still `keras.models.load_model` finds
every class: Keras's registry gets a stand-in under each registered name, which imports the room of
the class when a saved file needs it. This list is also that of the names in saved models, so a
released name stays. A test compares it with the classes.
"""

import importlib
import importlib.abc
import importlib.util
import sys

PACKAGE = "keras_attention"

# Folder -> the names that its classes are registered under. A new class adds its name here.
CLASSES = {
    "scores": """
        Additive Bilinear Concat Cosine Dot ScaledDot SquaredDistance
    """.split(),
    "normalizers": """
        Activation Entmax ReLU Sigmoid Softmax Sparsemax TopK
    """.split(),
    "masks": """
        BigBird BlockSparse Blockwise Both Causal Chunked Dilated Either Full Global Longformer Not
        Prefix Random Strided Window Window2D
    """.split(),
    "positions": """
        ALiBi ContinuousBias Disentangled DynamicNTK Learned Learned2D LearnedALiBi Linear Llama3
        LongRoPE NTK RelativeBias Rotary Scalar Several Shaw Sinusoidal Sinusoidal2D SwinBias
        TransformerXL XPos YaRN
    """.split(),
    "attention": """
        Attention DifferentialAttention EluFeatures FavorFeatures HeadProjection LatentAttention
        LinearAttention MemorizingAttention MultiHeadAttention ReLUFeatures ResidualAttention
        SegmentRecurrence
    """.split(),
    "blocks": """
        AllowedLogits AttentionPooling Biaffine BoxHead CharacterEmbedding ConformerBlock
        ConvolutionModule ConvolutionStem ConvolutionSubsampling DecoderBlock DeepNorm EncoderBlock
        FeedForward FilterAugment FirstOf FixedLength FrameConvolutions GreedyCTCDecoder LayerScale
        LengthMask LogMelSpectrogram MacaronBlock MixtureOfExperts ObjectQueries ParallelBlock
        ParserState PatchEmbedding PathDropout Pooling PositionEmbedding PositionsInDocuments
        PostNorm PreNorm PrefixTokens RMSNormalization ReZero Repeat ResiDual ResidualWeight
        SandwichNorm Scan SegmentEmbedding SpanLogits SpecAugment TokenDropout TokenEmbedding
        WordEmbedding
    """.split(),
    "recurrent": """
        AttentionCell Bridge FeedbackDecoder LocalWindow RecurrentDecoder RecurrentEncoder
    """.split(),
    "generation": """
        Allowed AtFirst Beam Forbidden Frequency Greedy MinimumLength NoRepeatNGrams OneOf
        Repetition Rule Sample
    """.split(),
    "training": """
        AdamW BoxAveragePrecision CTCAttention CTCTranscriptAccuracy ClassF1 ConstantForcing
        DecoderAccuracy DecoderSequenceAccuracy DependencyCrossentropy EntityF1 EntityPrecision
        EntityRecall ExponentialForcing HungarianLoss InverseSigmoidForcing JointModel
        LabeledAttachment LayerwiseAdamW LinearForcing MacroF1 MaskedCTC MaskedPerplexity
        MaskedSequenceAccuracy MaskedSparseCategoricalAccuracy
        MaskedSparseCategoricalCrossentropy MultiLabelCrossentropy Noam SpanCrossentropy SpanF1
        TwoPasses UnlabeledAttachment
    """.split(),
}
FUNCTIONS = {"blocks": ["gelu_tanh", "quick_gelu"]}


def register_with_keras():
    """Put the stand-ins into Keras's registry, now or when Keras is imported."""
    if "keras" in sys.modules:
        _add_stand_ins()
    else:
        sys.meta_path.insert(0, _KerasFinder())


def _add_stand_ins():
    import keras

    # It registers operations. Whoever imports it before Keras gets here while it is half imported.
    importlib.import_module(f"{PACKAGE}.core.keras_internals")
    registry = keras.saving.get_custom_objects()
    for room, names in CLASSES.items():
        for name in names:
            registry.setdefault(f"{PACKAGE}>{name}", _StandIn(room, name))
    for room, names in FUNCTIONS.items():
        for name in names:
            if f"{PACKAGE}>{name}" not in registry:
                keras.saving.register_keras_serializable(PACKAGE, name)(_defer_call(room, name))


class _StandIn:
    """Acts as the class registered under `name`, which it imports when it is used."""

    def __init__(self, room, name):
        self._room, self._name, self.__name__ = room, name, name

    def __getattr__(self, attribute):
        if attribute.startswith("_"):  # such as what `copy` looks for
            raise AttributeError(attribute)
        return getattr(_import_registered(self._room, self._name), attribute)

    def __call__(self, *args, **kwargs):
        return _import_registered(self._room, self._name)(*args, **kwargs)

    def __repr__(self):
        return f"<{PACKAGE}.{self._room}: {self._name}, not imported yet>"


def _defer_call(room, name):
    """Make a function that stands in for a registered function: Keras checks the type."""

    def stand_in(*args, **kwargs):
        return _import_registered(room, name)(*args, **kwargs)

    stand_in.__name__ = name
    return stand_in


def _import_registered(room, name):
    import keras

    getattr(
        importlib.import_module(f"{PACKAGE}.{room}"), name, None
    )  # a lazy folder imports it now
    # Not `get_registered_object`: while Keras loads, that may return the stand-in.
    value = keras.saving.get_custom_objects()[f"{PACKAGE}>{name}"]
    if isinstance(value, _StandIn):
        raise ImportError(f"{PACKAGE}.{room} registers no {name}, which registration.py expects.")
    return value


class _KerasFinder(importlib.abc.MetaPathFinder):
    """Finds Keras where the other finders do, and has the stand-ins added after its import."""

    searching = False

    def find_spec(self, fullname, path=None, target=None):
        if fullname != "keras" or self.searching:
            return None
        self.searching = True
        try:
            spec = importlib.util.find_spec(fullname)
        finally:
            self.searching = False
        if spec is not None:
            spec.loader = _KerasLoader(spec.loader, self)
        return spec


class _KerasLoader(importlib.abc.Loader):
    """Keras's own loader, which adds the stand-ins at the end."""

    def __init__(self, loader, finder):
        self.loader, self.finder = loader, finder

    def __getattr__(self, name):
        return getattr(self.loader, name)

    def create_module(self, spec):
        return self.loader.create_module(spec)

    def exec_module(self, module):
        module.__loader__ = module.__spec__.loader = self.loader
        self.loader.exec_module(module)
        sys.meta_path.remove(self.finder)
        _add_stand_ins()

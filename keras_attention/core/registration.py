"""The registered names of all classes, so that Keras finds classes that are not imported yet.

Importing the package imports neither Keras nor any layer. Instead, Keras's registry gets a stand-in
under each registered name. The stand-in imports the class when a saved model needs it. Saved models
contain these names, so a released name must never change. A test compares the list below with the
classes.
"""

import importlib
import importlib.abc
import importlib.util
import sys

PACKAGE = "keras_attention"

# {folder: registered names of its classes}. Add the name of each new class here.
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
        AllowedLogits AttentionPooling Biaffine BoxHead CharacterEmbedding ConditionalRandomField
        ConformerBlock ContrastiveLogits ConvolutionModule ConvolutionStem ConvolutionSubsampling
        DecoderBlock DeepNorm EncoderBlock FeedForward FilterAugment FirstOf FixedLength
        FrameConvolutions GreedyCTCDecoder LayerScale LengthMask LogMelSpectrogram MacaronBlock
        MixtureOfExperts
        ObjectQueries ParallelBlock ParserState PatchEmbedding PathDropout Pooling PositionEmbedding
        PositionsInDocuments PostNorm PreNorm PrefixTokens RMSNormalization ReZero Repeat ResiDual
        ResidualWeight SandwichNorm Scan SegmentEmbedding SpanLogits SpecAugment TokenDropout
        TokenEmbedding WordEmbedding
    """.split(),
    "recurrent": """
        AttentionCell Bridge FeedbackDecoder LocalWindow RecurrentDecoder RecurrentEncoder
    """.split(),
    "generation": """
        Allowed AtFirst Beam Forbidden Frequency Greedy JSONSchema MinimumLength NoRepeatNGrams
        OneOf Regex Repetition Rule Sample Timestamps TokenTexts
    """.split(),
    "training": """
        AdamW BoxAveragePrecision CRFLoss CTCAttention CTCTranscriptAccuracy ClassF1 ConstantForcing
        ContrastiveAccuracy DecoderAccuracy DecoderSequenceAccuracy DependencyCrossentropy EntityF1
        EntityPrecision EntityRecall ExponentialForcing HungarianLoss InfoNCE InverseSigmoidForcing
        JointModel LabeledAttachment LayerwiseAdamW LinearForcing MacroF1 MaskedCTC MaskedPerplexity
        MaskedSequenceAccuracy MaskedSparseCategoricalAccuracy
        MaskedSparseCategoricalCrossentropy MultiLabelCrossentropy Noam SpanCrossentropy SpanF1
        TwoPasses UnlabeledAttachment
    """.split(),
}
FUNCTIONS = {"blocks": ["gelu", "gelu_tanh", "quick_gelu"]}


def register_with_keras():
    """Add a stand-in for each class to Keras's registry, now or as soon as Keras is imported.

    With these, `keras.models.load_model` finds classes that are not imported yet.
    """
    if "keras" in sys.modules:
        _add_stand_ins()
    else:
        sys.meta_path.insert(0, _KerasFinder())


def _add_stand_ins():
    import keras

    # This import registers operations.
    importlib.import_module(f"{PACKAGE}.core.keras_internals")
    registry = keras.saving.get_custom_objects()
    for folder, names in CLASSES.items():
        for name in names:
            registry.setdefault(f"{PACKAGE}>{name}", _StandIn(folder, name))
    for folder, names in FUNCTIONS.items():
        for name in names:
            if f"{PACKAGE}>{name}" not in registry:
                keras.saving.register_keras_serializable(PACKAGE, name)(_defer_call(folder, name))


class _StandIn:
    """A stand-in for the class registered under `name`, which it imports when it is first used.

    `folder` is the folder of this package that defines the class, such as `"blocks"`.
    """

    def __init__(self, folder, name):
        self._folder, self._name, self.__name__ = folder, name, name

    def __getattr__(self, attribute):
        if attribute.startswith("_"):  # such as special methods that `copy` tries
            raise AttributeError(attribute)
        return getattr(_import_registered(self._folder, self._name), attribute)

    def __call__(self, *args, **kwargs):
        return _import_registered(self._folder, self._name)(*args, **kwargs)

    def __repr__(self):
        return f"<{PACKAGE}.{self._folder}: {self._name}, not imported yet>"


def _defer_call(folder, name):
    """Return a function that imports the function `name` from a folder and calls it.

    Keras requires a real function, so a `_StandIn` would not do.
    """

    def stand_in(*args, **kwargs):
        return _import_registered(folder, name)(*args, **kwargs)

    stand_in.__name__ = name
    return stand_in


def _import_registered(folder, name):
    import keras

    module = importlib.import_module(f"{PACKAGE}.{folder}")
    getattr(module, name, None)  # folders with lazy imports import it now
    # `get_registered_object` may return the stand-in while Keras loads a model.
    value = keras.saving.get_custom_objects()[f"{PACKAGE}>{name}"]
    if isinstance(value, _StandIn):
        raise ImportError(f"{PACKAGE}.{folder} registers no {name}, which registration.py expects.")
    return value


class _KerasFinder(importlib.abc.MetaPathFinder):
    """Import hook that waits for the import of Keras, and then adds our classes to its registry."""

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
    """Loader that imports Keras with its own loader, and then adds our classes to its registry."""

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

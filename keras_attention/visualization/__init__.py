"""Functions that record, measure and plot the attention of a model, and plot boxes and errors."""

from keras_attention.visualization.attention_map import attention_map
from keras_attention.visualization.attention_page import attention_page
from keras_attention.visualization.boxes import boxes_map
from keras_attention.visualization.confusion_map import confusion_map
from keras_attention.visualization.head_statistics import HeadStatistics, head_statistics
from keras_attention.visualization.overlay import attention_gallery, words_map
from keras_attention.visualization.record import record_attention
from keras_attention.visualization.rollout import relevance, rollout

__all__ = [
    "HeadStatistics",
    "attention_gallery",
    "attention_map",
    "attention_page",
    "boxes_map",
    "confusion_map",
    "head_statistics",
    "record_attention",
    "relevance",
    "rollout",
    "words_map",
]

"""Training on several devices with JAX, with weights that are split among the devices."""

from keras_attention.core.weight_axes import ROLES, find_axes, name_axes
from keras_attention.distribution.orbax import OrbaxBackup, load_orbax
from keras_attention.distribution.report import LayoutReport, WeightLayout
from keras_attention.distribution.role_parallel import RoleParallel
from keras_attention.distribution.split import split_weight

__all__ = [
    "ROLES",
    "LayoutReport",
    "OrbaxBackup",
    "RoleParallel",
    "WeightLayout",
    "find_axes",
    "load_orbax",
    "name_axes",
    "split_weight",
]

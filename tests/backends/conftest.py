"""Tests on JAX and PyTorch, and beside packages of those. Files that cannot run are not collected.

A file on pytest's command line is always collected.
"""

import importlib.util

import keras

# {file: the backends that Keras must run on}
BACKENDS = {
    "test_deep_stacks_on_jax.py": ("jax",),
    "test_distributed_torch.py": ("torch",),
    "test_distribution.py": ("jax",),
    "test_flash_attention_on_jax.py": ("jax",),
    "test_flash_attention_on_torch.py": ("torch",),
    "test_gpu_benchmark_on_jax.py": ("jax",),
    "test_kernels.py": ("jax", "torch"),
    "test_processes.py": ("jax",),
}
# {file: the packages that must be installed}
PACKAGES = {
    "test_bracket_scores.py": ("PYEVALB",),
    "test_gpu_benchmark.py": ("jax", "torch", "transformers"),
    "test_gpu_benchmark_on_jax.py": ("jax", "torch", "transformers"),
    "test_hugging_face_models.py": ("torch", "transformers"),
    "test_hugging_face_positions.py": ("torch", "transformers"),
    "test_imports.py": ("jax", "torch"),
    "test_orbax.py": ("orbax",),
    "test_pretrained.py": ("torch", "transformers"),
    "test_published_weights.py": ("onnxruntime", "torch", "transformers"),
    "test_saved_elsewhere.py": ("jax", "torch"),
    "test_timm.py": ("timm", "torch", "torchvision"),
    "test_tokenizers.py": ("torch", "transformers"),
}


def is_missing(package):
    return importlib.util.find_spec(package) is None


collect_ignore = [
    *(name for name, backends in BACKENDS.items() if keras.backend.backend() not in backends),
    *(name for name, packages in PACKAGES.items() if any(map(is_missing, packages))),
]

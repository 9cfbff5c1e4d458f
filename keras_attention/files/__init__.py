"""Read and write the files of models safely, and import optional libraries."""

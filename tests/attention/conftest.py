def pytest_configure(config):
    config.addinivalue_line("markers", "requires_trainable_backend: a mark of Keras's own tests")

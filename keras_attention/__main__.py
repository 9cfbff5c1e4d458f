from keras_attention.cli import main

if __name__ == "__main__":
    main()

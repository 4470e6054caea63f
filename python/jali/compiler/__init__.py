"""The compiler: a trained model in, an encrypted program out. Users import jali.nn, its public
face."""

"""Whole networks as TensorFlow's converter writes them, from a seed: MobileNetV2, a keyword spotter, a segmentation network, a block
of a transformer; as floats, halves and integers."""
import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
import numpy as np  # noqa: E402
import tensorflow as tf  # noqa: E402

KINDS = ("float32", "float16", "int8", "int16x8")


def mobilenet():
    return tf.keras.applications.MobileNetV2(input_shape=(96, 96, 3), alpha=0.35, weights=None, classes=100)


def keyword_spotter():
    layers = tf.keras.layers
    stack = [layers.Input((49, 10, 1)), layers.Conv2D(32, (10, 4), strides=2, padding="same", activation="relu")]
    for _ in range(3):
        stack += [layers.DepthwiseConv2D(3, padding="same"), layers.BatchNormalization(), layers.ReLU(),
                  layers.Conv2D(32, 1, activation="relu")]
    return tf.keras.Sequential([*stack, layers.GlobalAveragePooling2D(), layers.Dense(12, activation="softmax")])


def segmentation():
    layers = tf.keras.layers
    image = layers.Input((64, 64, 3))
    skipped = layers.Conv2D(8, 3, strides=2, padding="same", activation="relu")(image)
    x = layers.Conv2D(16, 3, strides=2, padding="same", activation="relu")(skipped)
    x = layers.Conv2D(16, 3, padding="same", dilation_rate=2, activation="relu")(x)
    x = layers.Concatenate()([layers.UpSampling2D(2, interpolation="bilinear")(x), skipped])
    x = layers.Conv2DTranspose(8, 3, strides=2, padding="same", activation="relu")(x)
    return tf.keras.Model(image, layers.Conv2D(5, 1)(x))


def transformer():
    layers = tf.keras.layers
    rows = layers.Input((16, 32))
    x = layers.LayerNormalization()(rows + layers.MultiHeadAttention(4, 8)(rows, rows))
    hidden = layers.Dense(32)(layers.Dense(64, activation="gelu")(x))
    return tf.keras.Model(rows, layers.Dense(4)(layers.LayerNormalization()(x + hidden)[:, 0]))


NETWORKS = {"mobilenet_v2": (mobilenet, (96, 96, 3)), "keyword_spotter": (keyword_spotter, (49, 10, 1)),
            "segmentation": (segmentation, (64, 64, 3)), "transformer": (transformer, (16, 32))}


def seeded(build):
    """The network, whose norms have seen data."""
    tf.keras.utils.set_random_seed(1)
    model = build()
    source = np.random.default_rng(2)
    for weight in model.weights:
        if "moving_variance" in weight.path:
            weight.assign(source.uniform(0.5, 2, weight.shape))
        elif "moving_mean" in weight.path or "beta" in weight.path:
            weight.assign(source.normal(0, 0.2, weight.shape))
    return model


def convert(model, kind, shape):
    converter = tf.lite.TFLiteConverter.from_keras_model(model)
    if kind == "float32":
        return converter.convert()
    converter.optimizations = [tf.lite.Optimize.DEFAULT]
    if kind == "float16":
        converter.target_spec.supported_types = [tf.float16]
        return converter.convert()
    source = np.random.default_rng(3)
    samples = [source.standard_normal((1, *shape)).astype(np.float32) for _ in range(8)]
    converter.representative_dataset = lambda: ([sample] for sample in samples)
    if kind == "int8":
        converter.target_spec.supported_ops = [tf.lite.OpsSet.TFLITE_BUILTINS_INT8]
        converter.inference_input_type = converter.inference_output_type = tf.int8
    else:
        wide = tf.lite.OpsSet.EXPERIMENTAL_TFLITE_BUILTINS_ACTIVATIONS_INT16_WEIGHTS_INT8
        converter.target_spec.supported_ops = [wide]
    return converter.convert()


def write(folder):
    """Files NAME.KIND.tflite. The converter has no int16 form of the transformer's negations."""
    paths = []
    for name, (build, shape) in NETWORKS.items():
        model = seeded(build)
        for kind in KINDS:
            if (name, kind) == ("transformer", "int16x8"):
                continue
            paths.append(folder / f"{name}.{kind}.tflite")
            paths[-1].write_bytes(convert(model, kind, shape))
    return paths

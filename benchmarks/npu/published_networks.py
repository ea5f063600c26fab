"""Stand-ins for networks of publications: the shapes of their layers in 8 bits, weights from a seed.

A publication says how many layers there are and of which sizes, not what they answer: time does not depend on data. Values
are unsigned and weights signed, both without a zero point. Needs numpy and onnx.
"""
import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

SEED, OPSET, IR_VERSION = 1, 17, 8
VALUE_SCALE, WEIGHT_SCALE = 0.05, 0.02


class Builder:
    """Appends layers, each to the value that the last one gave, or to one that is named."""

    def __init__(self, shape):
        self.random = np.random.default_rng(SEED)
        self.nodes, self.constants, self.shapes = [], [], {"x": tuple(shape)}
        self.of_values = [self.constant(np.float32(VALUE_SCALE)), self.constant(np.uint8(0))]
        self.of_weights = [self.constant(np.float32(WEIGHT_SCALE)), self.constant(np.int8(0))]
        self.last = self.rounded("x")

    def constant(self, array):
        name = f"c{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.asarray(array), name))
        return name

    def node(self, operator, inputs, shape, **attributes):
        name = f"t{len(self.nodes)}"
        self.nodes.append(helper.make_node(operator, inputs, [name], name=f"{operator}{len(self.nodes)}", **attributes))
        self.shapes[name] = tuple(shape)
        return name

    def rounded(self, value):
        """Behind the value what says that it is kept in 8 bits; it is the last one then."""
        shape = self.shapes[value]
        stored = self.node("QuantizeLinear", [value, *self.of_values], shape)
        self.last = self.node("DequantizeLinear", [stored, *self.of_values], shape)
        return self.last

    def weights(self, shape):
        values = self.constant(self.random.integers(-127, 128, shape).astype(np.int8))
        return self.node("DequantizeLinear", [values, *self.of_weights], shape)

    def bounded(self, value, relu):
        return self.rounded(self.node("Relu", [value], self.shapes[value]) if relu else value)

    def dense(self, outputs, relu=True):
        rows, inputs = self.shapes[self.last]
        product = self.node("MatMul", [self.last, self.weights((inputs, outputs))], (rows, outputs))
        return self.bounded(product, relu)

    def convolution(self, channels, kernel, stride=1, of=None, relu=True):
        value = of or self.last
        batch, inputs, height, width = self.shapes[value]
        shape = (batch, channels, -(-height // stride), -(-width // stride))
        product = self.node("Conv", [value, self.weights((channels, inputs, kernel, kernel))], shape, kernel_shape=[kernel] * 2,
                            strides=[stride] * 2, pads=[kernel // 2] * 4)
        return self.bounded(product, relu)

    def elementwise(self, operator, *others, relu=False):
        """The last value, with others of its shape."""
        return self.bounded(self.node(operator, [self.last, *others], self.shapes[self.last]), relu)

    def save(self, path):
        takes, gives = (helper.make_tensor_value_info(name, TensorProto.FLOAT, self.shapes[name]) for name in ("x", self.last))
        graph = helper.make_graph(self.nodes, path.stem, [takes], [gives], self.constants)
        onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=IR_VERSION), path)


def mlp(layers, width, batch):
    net = Builder((batch, width))
    for _ in range(layers):
        net.dense(width)
    return net


def lstm0():
    """24 products of the width that makes 52 M weights; 34 layers element by element: a Sigmoid each, a product behind ten."""
    products, vectors, width, batch = 24, 34, 1472, 64
    net = Builder((batch, width))
    for index in range(products):
        before = net.last
        net.dense(width, relu=False)
        net.elementwise("Sigmoid")
        if index < vectors - products:
            net.elementwise("Mul", before)
    return net


def cnn0(last_channels):
    """16 convolutions of 19 x 19, 2,888 operations for a byte of weights at batch 8; the ends are those of a network for Go."""
    planes, channels, middle = 48, 256, 14
    net = Builder((8, planes, 19, 19))
    net.convolution(channels, 5)
    for _ in range(middle):
        net.convolution(channels, 3)
    net.convolution(last_channels, 1 if last_channels == 1 else 3)
    return net


def resnet18_of_vta():
    """What TVM gives the device of ResNet-18: from behind the first pool to before the last one."""
    net = Builder((1, 64, 56, 56))
    for channels, stride in ((64, 1), (64, 1), (128, 2), (128, 1), (256, 2), (256, 1), (512, 2), (512, 1)):
        start = net.last
        shortcut = net.convolution(channels, 1, stride, relu=False) if stride > 1 else start
        net.convolution(channels, 3, stride, of=start)
        net.convolution(channels, 3, relu=False)
        net.elementwise("Add", shortcut, relu=True)
    return net


def small_picture(channels):
    """Convolutions 3 x 3 on a picture of one channel; how many there are was not published."""
    net = Builder((1, 1, 128, 128))
    for _ in range(4):
        net.convolution(channels, 3)
    return net


NETWORKS = {
    "tpu_mlp0": lambda: mlp(5, 2000, 200),
    "tpu_mlp1": lambda: mlp(4, 1120, 168),
    "tpu_lstm0": lstm0,
    "tpu_cnn0": lambda: cnn0(1),
    "tpu_cnn0_wide": lambda: cnn0(256),
    "vta_resnet18": resnet18_of_vta,
    "ethos_16_channels": lambda: small_picture(16),
    "ethos_17_channels": lambda: small_picture(17),
}

"""Gradients, and steps of training, on arrays."""

import os
import tempfile
import threading
import unittest

import numpy as np

import candela
import common

MODEL = os.path.join(common.DIGITS, "digits.onnx")
BATCH = 60

# The sum of x * x, whose gradient is 2 * x.
SQUARES = b"""graph @main(%x: f32[3], %n: i32[]) -> (%y: f32[] "y", %z: i32[] "z") {
  %s = mul %x, %x
  %y = reduce_sum %s {axes = [0], keepdims = 0}
  %z = add %n, %n
}
"""


def digits(batch=0):
    """Images and labels of one batch."""
    images = np.load(os.path.join(common.DIGITS, "test_images.npy"))
    labels = np.load(os.path.join(common.DIGITS, "test_labels.npy"))
    rows = slice(batch % 6 * BATCH, (batch % 6 + 1) * BATCH)
    return images[rows], labels[rows]


def trainer_of(backend=None, **options):
    return candela.trainer(MODEL, backend, dims={"N": BATCH}, **options)


class Gradients(unittest.TestCase):
    def test_of_a_text(self):
        session = candela.grad(SQUARES, name="squares.cdl")
        self.assertEqual([port.name for port in session.outputs], ["y", "d_x"])
        y, gradient = session(np.array([1, -2, 3], "float32"), np.int32(5))
        self.assertEqual(float(y), 14)
        np.testing.assert_array_equal(gradient, [2, -4, 6])

    def test_of_a_model(self):
        """A weight moves the scores as its gradient says."""
        images, _ = digits()
        for backend in common.built("soft", "cpu"):
            with self.subTest(backend=backend):
                session = candela.grad(MODEL, "images", "scores", backend, dims={"N": BATCH})
                self.assertEqual([port.name for port in session.inputs], ["images", "d_scores"])
                weights = np.random.default_rng(1).standard_normal((BATCH, 10)).astype("float32")
                scores, gradient = session(images, weights)
                self.assertEqual(gradient.shape, images.shape)
                plain = candela.compile(MODEL, dims={"N": BATCH})
                np.testing.assert_allclose(scores, plain(images), rtol=1e-3, atol=1e-3)
                step = np.random.default_rng(2).standard_normal(images.shape).astype("float32") * 1e-3
                moved = (plain(images + step).astype("float64") - plain(images - step)) * weights
                self.assertAlmostEqual(moved.sum() / 2, (gradient * step).sum(), delta=0.02 * np.abs(gradient * step).sum())

    def test_refusals(self):
        for wrt, of, text in ((None, "w", "the model has no output 'w'; there are y, z"),
                              ("w", None, "'w' is no input and no constant"),
                              (["n"], None, "there is no gradient with respect to it"),
                              (None, "z", "only floats have a gradient")):
            with self.subTest(text=text), self.assertRaisesRegex(candela.InvalidArgumentError, text):
                candela.grad(SQUARES, wrt, of, name="squares.cdl")


class Training(unittest.TestCase):
    def test_learns(self):
        for backend in common.built("soft", "cpu"):
            with self.subTest(backend=backend), trainer_of(backend, seed=1) as trainer:
                losses = [trainer.step(*digits(i), learning_rate=0.005) for i in range(20)]
                self.assertGreater(losses[0], 2)
                self.assertLess(losses[-1], 1.2)
                with tempfile.TemporaryDirectory() as folder:
                    path = os.path.join(folder, "trained.onnx")
                    trainer.save(path)
                    again = candela.trainer(path, dims={"N": BATCH})
                    for port in trainer.parameters:
                        np.testing.assert_array_equal(again.read(port.name), trainer.read(port.name))

    def test_same_bits(self):
        """By the names of inputs or in their order, of a file or its content, in one line or in threads."""
        with open(MODEL, "rb") as file:
            content = file.read()
        one = trainer_of(optimizer="momentum", weight_decay=0.01, clip_norm=1)
        other = candela.trainer(content, dims={"N": BATCH}, optimizer="momentum", weight_decay=0.01, clip_norm=1)
        for i in range(3):
            images, labels = digits(i)
            loss = one.step(images, labels, learning_rate=0.01)
            self.assertEqual(loss, other.step(images=images, labels=labels.astype("uint8"), learning_rate=0.01))
        name = one.parameters[0].name
        np.testing.assert_array_equal(one.read(name), other.read(name))

    def test_threads_take_turns(self):
        trainer = trainer_of(optimizer="sgd")
        images, labels = digits()
        losses = []
        def work():
            for _ in range(5):
                losses.append(trainer.step(images, labels, learning_rate=0.01))
        threads = [threading.Thread(target=work) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        alone = trainer_of(optimizer="sgd")
        self.assertEqual(sorted(losses), sorted(alone.step(images, labels, learning_rate=0.01) for _ in range(15)))

    def test_frozen_parameters_are_none(self):
        names = [port.name for port in trainer_of().parameters]
        left = [port.name for port in trainer_of(freeze=names[0]).parameters]
        self.assertEqual(left, names[1:])

    def test_refusals(self):
        trainer = trainer_of()
        images, labels = digits()
        for call, text in (
                (lambda: trainer.step(images, labels), "a step needs its learning_rate"),
                (lambda: trainer.step(images, learning_rate=1), "1 arrays were given, a step takes 2: 'images', 'labels'"),
                (lambda: trainer.step(images=images, learning_rate=1), "input 'labels' is missing"),
                (lambda: trainer.step(images=images, labels=labels, z=labels, learning_rate=1), "z: no such input"),
                (lambda: trainer.step(images, labels=labels, learning_rate=1), "in order or by name"),
                (lambda: trainer.step(images[:2], labels, learning_rate=1), "input 'images' is"),
                (lambda: trainer.step(images, labels + 5, learning_rate=1), "the model has 10 classes"),
                (lambda: trainer.step(images, labels, learning_rate=-1), "learning_rate -1"),
                (lambda: trainer.read("z"), "z: no such parameter"),
                (lambda: trainer_of(loss="hinge"), "loss 'hinge': cross_entropy or mse"),
                (lambda: trainer_of("reference"), "the reference does not train"),
                (lambda: candela.trainer(MODEL), "N")):
            with self.subTest(text=text), self.assertRaisesRegex(candela.InvalidArgumentError, text):
                call()
        with self.assertRaisesRegex(candela.UnsupportedError, "only models of ONNX are trained"):
            candela.trainer(SQUARES, name="squares.cdl")

    def test_closed(self):
        trainer = trainer_of()
        trainer.close()
        self.assertTrue(trainer.closed)
        for call in (lambda: trainer.step(*digits(), learning_rate=1), trainer.report, lambda: trainer.save("x.onnx")):
            with self.assertRaisesRegex(candela.CancelledError, "the trainer is closed"):
                call()

    def test_progress_and_ctrl_c(self):
        stages = []
        trainer_of(progress=lambda stage, done: stages.append(stage))
        self.assertTrue(stages)
        def stop(_stage, _done):
            raise KeyboardInterrupt
        with self.assertRaises(KeyboardInterrupt):
            trainer_of(progress=stop)

    def test_fork(self):
        status, out, err = common.run_python("""
import os, numpy, candela
trainer = candela.trainer(%r, dims={"N": 2})
pid = os.fork()
if pid == 0:
    try:
        trainer.report()
    except candela.InvalidArgumentError as error:
        print("refused", flush=True)
    os._exit(0)
os.waitpid(pid, 0)
""" % MODEL)
        self.assertEqual((status, out, err), (0, "refused\n", ""))


if __name__ == "__main__":
    common.main()

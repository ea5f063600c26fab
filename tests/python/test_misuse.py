"""What is wrong gets an exception by its class, with a text that names it."""

import os
import pickle
import tempfile
import unittest
import weakref

import numpy as np

import candela
import common

X = np.zeros((2, 3), np.float32)


class Inputs(unittest.TestCase):
    def setUp(self):
        self.sessions = [common.compile_text(common.TWO), common.compile_text(common.TWO, "cpu")]

    def refuses(self, text, *given, error=candela.InvalidArgumentError):
        for session in self.sessions:
            for call in (session.run, session.submit):
                with self.assertRaisesRegex(error, text):
                    call(*given)

    def test_missing_and_unknown(self):
        self.refuses("input 'y' is missing; the model has 'x', 'y'", {"x": X})
        self.refuses("input 'y' is missing", [X])
        self.refuses("z: no such input in the model, which has 'x', 'y'", {"x": X, "y": X, "z": X})
        self.refuses("3 inputs were given, the model has 2", [X, X, X])
        self.refuses("z: no such output in the model, which has 'sum', 'product'", [X, X], ["z"])

    def test_wrong_type_and_shape(self):
        self.refuses(r"input 'x' is f32\[2,3\] but f64\[2,3\] was given", {"x": X.astype("f8"), "y": X})
        self.refuses(r"input 'x' is f32\[2,3\] but f32\[3,2\] was given", {"x": X.T, "y": X})
        self.refuses(r"input 'y' is f32\[2,3\] but f32\[\] was given", {"x": X, "y": np.float32(1)})
        self.refuses("format 'Zf'", {"x": X.astype("c8"), "y": X}, error=candela.UnsupportedError)
        self.refuses("format '>f'", {"x": X.astype(">f4"), "y": X}, error=candela.UnsupportedError)
        self.refuses("of rank 17", {"x": np.zeros((1,) * 17, np.float32), "y": X}, error=candela.UnsupportedError)

    def test_a_list_that_grows_while_it_is_read(self):
        class Growing:
            def __init__(self, inputs):
                self.inputs = inputs

            def __array__(self, dtype=None, copy=None):
                self.inputs += [X] * 100
                return X

        for session in self.sessions:
            inputs = [X]
            inputs.insert(0, Growing(inputs))
            self.assertEqual(session.run(inputs)[0].sum(), 0)

    def test_no_arrays(self):
        for nothing in (None, 1.5, "x", object(), {1.0}):
            self.refuses("input 'x': a .* is no array", {"x": nothing, "y": X})
        self.refuses("input 'x': a list, and sequences are no inputs", {"x": [[1.0]], "y": X},
                     error=candela.UnsupportedError)

    def test_memory_for_outputs(self):
        read_only = np.zeros((2, 3), np.float32)
        read_only.flags.writeable = False
        for memory, text in ((np.zeros((3, 2), np.float32), r"'sum' is f32\[2,3\] but memory of f32\[3,2\]"),
                             (np.zeros((2, 3), np.float64), r"'sum' is f32\[2,3\] but memory of f64\[2,3\]"),
                             (np.zeros((3, 2), np.float32).T, "an array with strides"),
                             (read_only, "no memory that can be written to"), (3, "a int is no memory")):
            self.refuses(text, [X, X], {"sum": memory})

    def test_an_object_whose_dlpack_fails(self):
        class Failing:
            def __dlpack__(self):
                raise RuntimeError("no tensor today")

        self.refuses("no tensor today", {"x": Failing(), "y": X}, error=RuntimeError)


class Models(unittest.TestCase):
    def test_files(self):
        with self.assertRaisesRegex(candela.NotFoundError, "nowhere.onnx: cannot open: No such file or directory"):
            candela.compile("nowhere.onnx")
        with self.assertRaisesRegex(candela.BadModelError, "model.onnx: no ONNX model"):
            candela.compile(b"no protobuf")
        with self.assertRaisesRegex(candela.Error, "broken.cdb"):
            candela.compile(b"no bundle", name="broken.cdb")
        with tempfile.TemporaryDirectory() as folder, self.assertRaises(candela.Error):
            candela.compile(folder)

    def test_options(self):
        digits = os.path.join(common.DIGITS, "digits.onnx")
        wrong = (({"backend": "nobody"}, "no backend named 'nobody'"), ({"backend": ["soft", ""]}, "an empty name"),
                 ({"dims": {"N": -1}}, "is no dimension"), ({"dims": {"N": "x"}}, "'x' is no dimension"),
                 ({"options": {"a": 1}}, "option 'a' is for no backend"), ({"partition": "luck"}, "luck"),
                 ({"bind_at_run": False}, "dim 'N' of input 'images' is not bound"),
                 ({"states": {"a": "b"}, "dims": {"N": 1}}, "state 'a=b' is not"))
        for options, text in wrong:
            with self.subTest(options=options):
                with self.assertRaisesRegex(candela.Error, text):
                    candela.compile(digits, **options)
        with self.assertRaisesRegex(candela.RefusedError, "not native"):
            candela.compile(digits, "soft", require_native=True, dims={"N": 1})

    def test_closed(self):
        session = common.compile_text(common.TWO)
        future = session.submit([X, X])
        future.result()
        session.close()
        session.close()
        self.assertEqual(future.result()[0].sum(), 0)
        for use in (lambda: session(X, X), lambda: session.submit([X, X]), lambda: session.inputs, session.report,
                    session.stats):
            with self.assertRaisesRegex(candela.InvalidArgumentError, "the session is closed"):
                use()

    def test_devices(self):
        with self.assertRaisesRegex(candela.NotFoundError, "nobody"):
            candela.Device("nobody")
        with self.assertRaises(candela.Error):
            candela.Device("template:99")
        device = candela.Device("template")
        with self.assertRaisesRegex(candela.InvalidArgumentError, "backend 'cpu' and 1 open devices: one of them"):
            common.compile_text(common.TWO, "cpu", devices=[device])
        with self.assertRaisesRegex(candela.InvalidArgumentError, "devices: None, expected candela.Device"):
            common.compile_text(common.TWO, devices=[device, None])
        session = common.compile_text(common.TWO, devices=(candela.Device("template") for _ in range(1)))
        self.assertEqual(session(X, X)[0].sum(), 0)
        options = candela._native.Options()
        options.set_devices([device])
        held = weakref.ref(device)
        del device
        self.assertIsNotNone(held())
        del options
        self.assertIsNone(held())


class Errors(unittest.TestCase):
    def test_classes(self):
        self.assertEqual(sorted(candela.errors.BY_STATUS), list(range(1, 13)))
        for status, error in candela.errors.BY_STATUS.items():
            raised = error("text")
            self.assertTrue(issubclass(error, candela.Error))
            self.assertEqual((raised.status, str(raised)), (status, "text"))
        self.assertTrue(issubclass(candela.TimedOutError, TimeoutError))
        self.assertTrue(issubclass(candela.InvalidArgumentError, ValueError))

    def test_nothing_is_pickled(self):
        with self.assertRaises(TypeError):
            pickle.dumps(common.compile_text(common.TWO))


if __name__ == "__main__":
    common.main()

"""Models that are compiled, loaded and run: digits, outputs, states, shapes, threads."""

import contextlib
import gc
import os
import resource
import tempfile
import threading
import unittest

import numpy as np

import candela
import common


class Digits(unittest.TestCase):
    def setUp(self):
        self.images = np.load(os.path.join(common.DIGITS, "test_images.npy"))
        self.labels = np.load(os.path.join(common.DIGITS, "test_labels.npy"))
        self.scores = np.load(os.path.join(common.DIGITS, "expected_scores.npy"))
        self.model = os.path.join(common.DIGITS, "digits.onnx")

    def test_every_backend(self):
        for backend in common.built("soft", "cpu", "template", "npu_sim", "opencl"):
            with self.subTest(backend=backend):
                count = 8 if backend == "npu_sim" else len(self.images)
                images, scores = self.images[:count], self.scores[:count]
                session = candela.compile(self.model, backend, dims={"N": count})
                found = session(images)
                self.assertEqual((found.dtype, found.shape), (np.float32, (count, 10)))
                np.testing.assert_allclose(found, scores, rtol=1e-3, atol=1e-3)

    def test_accuracy_of_integers(self):
        session = candela.compile(os.path.join(common.DIGITS, "digits_int8.onnx"), "cpu")
        self.assertGreaterEqual((session(self.images).argmax(1) == self.labels).sum(), 355)

    def test_ports(self):
        session = candela.compile(self.model)
        [images], [scores] = session.inputs, session.outputs
        self.assertEqual((images.name, images.type, images.shape), ("images", "f32", (None, 1, 8, 8)))
        self.assertEqual((scores.name, scores.type, scores.shape, scores.is_state), ("scores", None, None, False))
        [scores] = candela.compile(self.model, dims={"N": 4}).outputs
        self.assertEqual((scores.type, scores.dtype, scores.shape), ("f32", np.float32, (4, 10)))

    def test_shapes_of_each_run(self):
        session = candela.compile(self.model, "cpu")
        for count in (1, 7, 360, 7):
            np.testing.assert_allclose(session(self.images[:count]), self.scores[:count], rtol=1e-3, atol=1e-3)

    def test_stablehlo(self):
        text = "func.func @main(%a: tensor<2xf32>) -> tensor<2xf32> {\n %0 = stablehlo.negate %a : tensor<2xf32>\n return %0 : tensor<2xf32> }\n"
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "negated.mlir")
            with open(path, "w") as file:
                file.write(text)
            for model in (candela.load(path), candela.load(text.encode(), name="negated.mlir")):
                np.testing.assert_array_equal(model.compile("soft")(np.float32([1, -2])), np.float32([-1, 2]))
        with self.assertRaisesRegex(candela.BadModelError, "wrong.mlir: line 2: stablehlo.negate: value %b is not known here"):
            candela.load(text.replace("negate %a", "negate %b").encode(), name="wrong.mlir").compile("soft")

    def test_bytes_and_bundles(self):
        with open(self.model, "rb") as file:
            content = file.read()
        session = candela.load(content).compile("cpu", dims={"N": 2})
        expected = session(self.images[:2])
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "digits.cdb")
            session.save(path)
            with open(path, "rb") as file:
                bundle = file.read()
            for source in (path, candela.load(bundle, name="digits.cdb")):
                np.testing.assert_array_equal(candela.compile(source)(self.images[:2]), expected)
            with self.assertRaisesRegex(candela.InvalidArgumentError, "digits.cdb: a bundle is compiled already"):
                candela.compile(path, dims={"N": 2})

    def test_report_trace_and_progress(self):
        stages = []
        session = candela.compile(self.model, "cpu", dims={"N": 1}, progress=lambda *told: stages.append(told))
        self.assertTrue(stages and all(0 <= fraction <= 1 for _, fraction in stages), stages)
        self.assertEqual(session.report()["schema"], "candela.placement/1")
        session.profile()
        session(self.images[:1])
        self.assertTrue(session.trace())

    def test_runs_that_compile_tell_no_progress(self):
        stages = []
        session = candela.compile(self.model, "cpu", progress=lambda *told: stages.append(told))
        compiled = len(stages)
        for run in (session, lambda images: session.submit([images]).result()[0]):
            for count in (1, 2):
                np.testing.assert_allclose(run(self.images[:count]), self.scores[:count], rtol=1e-3, atol=1e-3)
        self.assertEqual(len(stages), compiled)

    def test_an_exception_of_progress_is_that_of_compile(self):
        def stop(stage, fraction):
            raise KeyError("enough")

        with self.assertRaisesRegex(KeyError, "enough"):
            candela.compile(self.model, dims={"N": 1}, progress=stop)


class Results(unittest.TestCase):
    def setUp(self):
        self.session = common.compile_text(common.TWO)
        self.x = np.arange(6, dtype=np.float32).reshape(2, 3)
        self.y = np.full((2, 3), 2, np.float32)

    def test_by_name_and_in_order(self):
        named = self.session.run({"y": self.y, "x": self.x})
        np.testing.assert_array_equal(named["sum"], self.x + 2)
        self.assertEqual(list(named), ["sum", "product"])
        in_order = self.session.run([self.x, self.y])
        self.assertIsInstance(in_order, list)
        np.testing.assert_array_equal(in_order[1], (self.x + 2) * 2)
        total, product = self.session(x=self.x, y=self.y)
        np.testing.assert_array_equal(total, self.x + 2)
        np.testing.assert_array_equal(product, (self.x + 2) * 2)

    def test_chosen_outputs(self):
        self.assertEqual(list(self.session.run({"x": self.x, "y": self.y}, "product")), ["product"])
        self.assertEqual(list(self.session.run({"x": self.x, "y": self.y}, ["sum"])), ["sum"])

    def test_memory_of_the_caller(self):
        total = np.zeros((2, 3), np.float32)
        product = candela.Tensor((2, 3))
        results = self.session.run({"x": self.x, "y": self.y}, {"sum": total, "product": product})
        self.assertIs(results["sum"], total)
        self.assertIs(results["product"], product)
        np.testing.assert_array_equal(total, self.x + 2)
        np.testing.assert_array_equal(product, (self.x + 2) * 2)

    def test_strides_are_read_as_they_are(self):
        wide = np.arange(12, dtype=np.float32).reshape(3, 4).T[::2]
        np.testing.assert_array_equal(self.session([wide, self.y][0], self.y)[0], wide + 2)
        self.assertFalse(wide.flags.c_contiguous)

    def test_results_outlive_the_session(self):
        session = common.compile_text(common.TWO)
        total, _ = session(self.x, self.y)
        session.close()
        del session
        gc.collect()
        np.testing.assert_array_equal(total, self.x + 2)

    def test_as_a_context(self):
        with common.compile_text(common.TWO) as session:
            session(self.x, self.y)
        self.assertTrue(session.closed)


class Submitted(unittest.TestCase):
    def setUp(self):
        self.session = common.compile_text(common.TWO, "cpu")
        self.y = np.ones((2, 3), np.float32)

    def test_results_in_any_order(self):
        futures = [self.session.submit({"x": np.full((2, 3), i, np.float32), "y": self.y}) for i in range(64)]
        for i, future in reversed(list(enumerate(futures))):
            self.assertEqual(future.result()["sum"][1, 2], i + 1)
            self.assertTrue(future.done())
            self.assertIs(future.result(timeout=5), future.result())
        self.assertEqual(self.session.stats()["succeeded"], 64)

    def test_futures_that_nobody_waits_for(self):
        for i in range(200):
            self.session.submit([np.full((2, 3), i, np.float32), self.y])
        gc.collect()
        self.assertEqual(self.session.submit([self.y, self.y]).result()[0][0, 0], 2)

    def test_arrays_that_submit_or_close_as_they_end(self):
        class Ending(np.ndarray):
            """Calls `end` when nobody holds it any more."""

            end = None

            def __del__(self):
                if self.end:
                    self.end()

        def given(end):
            x = np.zeros((2, 3), np.float32).view(Ending)
            x.end = end
            return x

        for last in (lambda: self.session.submit([self.y, self.y]).result(), self.session.close):
            for _ in range(50):
                self.session.submit([given(lambda: self.session.submit([self.y, self.y])), self.y])
            future = self.session.submit([given(last), self.y])
            del future
            with contextlib.suppress(candela.Error):
                for _ in range(200):
                    self.session.submit([self.y, self.y]).result()
        self.session.close()

    def test_await(self):
        import asyncio

        async def both():
            first = self.session.submit([self.y, self.y])
            second = self.session.submit([self.y, self.y * 3])
            return (await first)[0][0, 0], (await second)[0][0, 0]

        self.assertEqual(asyncio.run(both()), (2, 4))

    def test_shapes_of_each_request(self):
        session = candela.compile(os.path.join(common.DIGITS, "digits.onnx"), "cpu")
        images = np.load(os.path.join(common.DIGITS, "test_images.npy"))
        futures = [session.submit([images[:count]]) for count in (3, 1, 5)]
        self.assertEqual([future.result()[0].shape for future in futures], [(3, 10), (1, 10), (5, 10)])

    def test_cancelled_and_late(self):
        x = np.zeros((1, 1024, 1024), np.float32)
        session = common.compile_text(common.LONG, in_flight=1)
        first, second = session.submit([x]), session.submit([x])
        second.cancel()
        with self.assertRaises(candela.CancelledError):
            second.result()
        late = session.submit([x], timeout=1e-3)
        with self.assertRaises(candela.TimedOutError):
            late.result()
        for timeout in (0, -1, float("nan"), 1e-9):
            with self.assertRaisesRegex(candela.TimedOutError, "not done yet"):
                first.result(timeout)
        session.close()
        with self.assertRaises(candela.CancelledError):
            first.result()

    def test_no_room(self):
        x = np.zeros((1, 1024, 1024), np.float32)
        with common.compile_text(common.LONG, capacity=1) as session:
            first = session.submit([x])
            with self.assertRaises(candela.TimedOutError):
                session.submit([x], wait=False)
            first.cancel()


class States(unittest.TestCase):
    def test_go_on_until_they_are_given(self):
        for backend in common.built("soft", "cpu"):
            session = common.compile_text(common.STATES, backend, states={"past": "present"})
            self.assertTrue(session.inputs[0].is_state and session.outputs[0].is_state)
            one = np.array([1], np.int32)
            self.assertEqual([int(session(x=one)[0]) for _ in range(3)], [2, 4, 6])
            results = session.run({"x": one}, ["present"])
            self.assertEqual(int(results["present"][0]), 4)
            results = session.run({"x": one, "past": np.array([10], np.int32)})
            self.assertEqual((list(results), int(results["double"][0])), (["double"], 22))

    def test_of_a_bundle(self):
        session = common.compile_text(common.STATES, states={"past": "present"})
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "states.cdb")
            session.save(path)
            loaded = candela.compile(path)
            one = np.array([1], np.int32)
            self.assertEqual([int(loaded(x=one)[0]) for _ in range(2)], [2, 4])


class Threads(unittest.TestCase):
    def test_eight_at_once_and_memory_is_flat(self):
        session = common.compile_text(common.TWO, "cpu")
        y = np.ones((2, 3), np.float32)
        wrong = []

        def work(seed, count):
            for i in range(count):
                x = np.full((2, 3), seed * 1000 + i % 1000, np.float32)
                if i % 8:
                    total = session(x, y)[0]
                else:
                    total = session.submit([x, y]).result()[0]
                if not (total == x + 1).all():
                    wrong.append((seed, i))

        def round_of(count):
            threads = [threading.Thread(target=work, args=(seed, count)) for seed in range(8)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

        before = round_of(500)
        after = round_of(2000)
        self.assertEqual(wrong, [])
        self.assertLess(after - before, 4096, "KiB that 16000 runs left")

    def test_other_threads_run_meanwhile(self):
        session = common.compile_text(common.LONG)
        x = np.zeros((1, 1024, 1024), np.float32)
        thread = threading.Thread(target=session, args=(x,))
        thread.start()
        steps = 0
        while thread.is_alive():
            steps += 1
        thread.join()
        self.assertGreater(steps, 100)

    def test_closed_while_others_use_it(self):
        x = np.ones((2, 3), np.float32)

        def work(session, begun, wrong):
            uses = (lambda: session(x, x)[0], lambda: session.submit([x, x]).result()[0], lambda: session.submit([x, x]))
            try:
                for i in range(10**6):
                    found = uses[i % 3]()
                    if i % 3 < 2 and not (found == 2).all():
                        wrong.append(found)
                    if i == 10:
                        begun.release()
            except candela.Error as error:
                if "closed" not in str(error) and "cancelled" not in str(error):
                    wrong.append(error)

        for backend in common.built("soft", "cpu") * 10:
            session, begun, wrong = common.compile_text(common.TWO, backend), threading.Semaphore(0), []
            threads = [threading.Thread(target=work, args=(session, begun, wrong)) for _ in range(4)]
            for thread in threads:
                thread.start()
            for thread in threads:
                begun.acquire()
            session.close()
            for thread in threads:
                thread.join()
            self.assertEqual(wrong, [])

    def test_closed_by_two(self):
        x = np.zeros((1, 1024, 1024), np.float32)
        for _ in range(5):
            session = common.compile_text(common.LONG)
            session.submit([x])
            threads = [threading.Thread(target=session.close) for _ in range(4)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            self.assertTrue(session.closed)

    def test_number_of_threads(self):
        candela.set_threads(2)
        self.assertEqual(candela.threads(), 2)
        candela.set_threads(0)
        with self.assertRaisesRegex(candela.InvalidArgumentError, "5000 threads, expected 1 to 4096"):
            candela.set_threads(5000)


if __name__ == "__main__":
    common.main()

// What a page does with a model whose weights come apart, and what it is told when it does it wrong.
import { readFile } from 'node:fs/promises';
import { Model, inputs, outputs } from './step.mjs';
import { given } from './step_test_data.mjs';

const here = (name) => readFile(new URL(name, import.meta.url));
const code = await WebAssembly.compile(await here('./step.wasm'));
const weights = await here('./step.weights');

async function refusal(what) {
  try {
    await what();
  } catch (error) {
    return error.message;
  }
  throw new Error(`not refused: ${what}`);
}

function expect(truth, text) {
  if (!truth) throw new Error(text);
}

const same = (a, b) => a.every((value, i) => Object.is(value, b[i]));

expect((await refusal(() => Model.open(code))).includes('the module has no weights'), 'no weights');
const damaged = Uint8Array.from(weights);
damaged[damaged.length - 1] ^= 1;
expect((await refusal(() => Model.open(code, damaged))).includes('damaged weights (error 8)'), 'damaged weights');
expect((await refusal(() => Model.open(code, new Uint8Array(64)))).includes('(error 4)'), 'weights of another');

const model = await Model.open(code, weights);
const values = Object.fromEntries(inputs.filter((port) => port.partner === null).map((port) => [port.field, new port.type(given[port.field].buffer, 0, port.bytes / 4)]));
expect((await refusal(() => model.run({ nothing: [] }))).includes("no input 'nothing'"), 'an input that there is not');
expect((await refusal(() => model.run({ i: new Float32Array(3) }))).includes('320 elements, and 3'), 'too few elements');

// The state goes on from run to run, is the caller's to set, and begins again by reset().
const first = model.run(values);
const second = model.run(values);
expect(!same(first.ht, second.ht), 'the state stayed where it was');
const other = await Model.open(code, weights);
const resumed = other.run({ ...values, h: first.ht, c: first.ct });
expect(same(resumed.ht, second.ht) && same(resumed.hs, second.hs), 'a state that was given differs from one that was kept');
model.reset();
expect(same(model.run(values).hs, first.hs), 'reset() leaves something');
expect(outputs.length === 3 && outputs.filter((port) => port.partner !== null).length === 2, 'two states');
console.log('the host of the page: refusals, weights apart, states');

'use strict';
// The data stands in the page: see page.cpp beside this file. Everything below draws it;
// nothing is loaded from elsewhere.
const run = JSON.parse(document.getElementById('run').textContent);
const byId = id => document.getElementById(id);
const style = name => getComputedStyle(document.documentElement).getPropertyValue(name);

const count = n => {
  if (n >= 1e9) return (n / 1e9).toFixed(2) + ' G';
  if (n >= 1e6) return (n / 1e6).toFixed(2) + ' M';
  if (n >= 1e4) return (n / 1e3).toFixed(1) + ' k';
  return String(Math.round(n));
};

const percent = x => (100 * x).toFixed(1) + ' %';
const hue = layer => layer < 0 ? 'hsl(0 0% 60%)' : `hsl(${(layer * 137.508) % 360} 58% 52%)`;
const layerName = layer => layer < 0 ? 'no layer' : run.layers[layer].node;
const layerText = layer => {
  const shape = layer < 0 ? '' : run.layers[layer].shape;
  return shape ? `${layerName(layer)} (${shape})` : layerName(layer);
};

// Of steps of 1, 2 and 5 times powers of ten the least of which at most `most` are in the span.
const niceStep = (span, most) => {
  let step = 10 ** Math.floor(Math.log10(span / most));
  for (const times of [2, 2.5, 2])
    if (span / step > most) step *= times;
  return step;
};

// A line below a drawing, behind the layer's colour where there is one.
const tell = (line, text, layer) => {
  line.textContent = text;
  if (layer === undefined) return;
  const colour = document.createElement('i');
  colour.style.background = hue(layer);
  line.prepend(colour);
};

// A canvas of this height in CSS pixels, ready to draw.
const cleared = (canvas, height) => {
  const width = canvas.clientWidth, scale = window.devicePixelRatio || 1;
  canvas.width = width * scale;
  canvas.height = height * scale;
  canvas.style.height = height + 'px';
  const g = canvas.getContext('2d');
  g.scale(scale, scale);
  g.clearRect(0, 0, width, height);
  g.font = '11px system-ui,sans-serif';
  return g;
};

// The layer under the pointer in the legend: others are pale.
let marked = null;
const strength = layer => marked === null || marked === layer ? 1 : .15;

// --- Timeline: one row for each engine. Events of one engine follow each other, so that two binary
// searches find what is seen.
const lanes = run.engines.map(
    (name, i) => ({name, start: [], done: [], layer: [], op: [], stall: [], moved: run.moved[i]}));

for (const [i, row] of run.events.entries()) {
  const lane = lanes[i];
  let at = 0;
  for (let k = 0; k < row.length; k += 5) {
    const start = at + row[k], done = start + row[k + 1];
    lane.start.push(start);
    lane.done.push(done);
    lane.layer.push(row[k + 2]);
    lane.op.push(row[k + 3]);
    lane.stall.push(row[k + 4]);
    at = done;
  }
}

const canvas = byId('timeline'), left = 66, rowHeight = 24;
let from = 0, to = Math.max(run.cycles, 1), drag = null;

const firstAfter = (list, value) => {  // index of the first that is above
  let low = 0, high = list.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (list[middle] > value)
      high = middle;
    else
      low = middle + 1;
  }
  return low;
};

// How much of the memory's peak is used, below the engines.
const hasTraffic = lanes.some(lane => lane.moved.length), traffic = {
  top: 0,
  height: 40,
  bucket: 2
};
traffic.top = lanes.length * rowHeight + 8;
const lanesHeight = hasTraffic ? traffic.top + traffic.height + 2 : lanes.length * rowHeight;

// Bytes of instructions in a bucket of time, by what memory could move in it: 0 to 1. An
// instruction moves its bytes evenly from its begin to its end.
function trafficShares(buckets) {
  const bytes = new Array(buckets).fill(0), each = (to - from) / buckets;
  for (const lane of lanes.filter(lane => lane.moved.length)) {
    const last = firstAfter(lane.start, to);
    for (let k = firstAfter(lane.done, from); k < last; ++k) {
      const begin = Math.max(lane.start[k], from), end = Math.min(lane.done[k], to),
            rate = lane.moved[k] / (lane.done[k] - lane.start[k]),
            until = Math.min(buckets - 1, Math.floor((end - from) / each));
      for (let i = Math.floor((begin - from) / each); i <= until; ++i) {
        const inside = Math.min(end, from + (i + 1) * each) - Math.max(begin, from + i * each);
        bytes[i] += rate * Math.max(0, inside);
      }
    }
  }
  return bytes.map(of => Math.min(1, of / (each * run.bandwidth)));
}

function drawTraffic(g, space, ink, line) {
  const {top, height, bucket} = traffic;
  g.fillStyle = ink;
  g.fillText('memory', 0, top + 12);
  g.fillText('% of peak', 0, top + 26);
  g.fillStyle = line;
  for (const share of [0, .5, 1]) g.fillRect(left, top + (1 - share) * height, space, 1);
  g.fillStyle = style('--emulated');
  trafficShares(Math.max(1, Math.floor(space / bucket)))
      .forEach(
          (share, i) =>
              g.fillRect(left + i * bucket, top + (1 - share) * height, bucket, share * height));
}

// One engine's row.
function drawLane(g, lane, top, space) {
  const perCycle = space / (to - from), last = firstAfter(lane.start, to);
  let k = firstAfter(lane.done, from);
  while (k < last) {
    const x = Math.max(0, (lane.start[k] - from) * perCycle),
          end = Math.min(space, (lane.done[k] - from) * perCycle);
    if (end - x >= 1.5) {
      g.globalAlpha = strength(lane.layer[k]);
      g.fillStyle = hue(lane.layer[k]);
      g.fillRect(left + x, top, Math.max(end - x - .4, 1), rowHeight - 6);
      const text = layerName(lane.layer[k]);
      if (end - x > 60) {
        g.fillStyle = '#fff';
        g.fillText(text.slice(-Math.floor((end - x) / 7)), left + x + 3, top + 13, end - x - 6);
      }
      ++k;
      continue;
    }
    // Narrower than a pixel: all that lie in this one are a column, as dark as they fill it.
    const column = Math.floor(x), limit = from + (column + 1) / perCycle, layer = lane.layer[k];
    let busy = 0;
    do {
      busy += Math.min(lane.done[k], limit) - Math.max(lane.start[k], from);
      ++k;
    } while (k < last && lane.start[k] < limit);
    g.globalAlpha = Math.min(1, .15 + .85 * busy * perCycle) * strength(layer);
    g.fillStyle = hue(layer);
    g.fillRect(left + column, top, 1, rowHeight - 6);
  }
  g.globalAlpha = 1;
}

function drawTimeAxis(g, width, height, space) {
  const step = niceStep(to - from, Math.max(2, space / 75));
  for (let t = Math.ceil(from / step) * step; t <= to; t += step) {
    const x = left + (t - from) * space / (to - from), text = count(t);
    g.fillRect(x, 0, .5, height - 16);
    g.fillText(text, Math.min(x, width - g.measureText(text).width), height - 4);
  }
  g.fillText('cycles', 0, height - 4);
}

function drawTimeline() {
  const width = canvas.clientWidth, height = lanesHeight + 22, space = width - left,
        ink = style('--soft'), line = style('--line'), g = cleared(canvas, height);
  for (const [i, lane] of lanes.entries()) {
    const top = i * rowHeight + 2;
    g.fillStyle = ink;
    g.fillText(lane.name, 0, top + 14);
    g.fillStyle = line;
    g.fillRect(left, top + rowHeight - 3, space, 1);
    drawLane(g, lane, top, space);
  }
  if (hasTraffic) drawTraffic(g, space, ink, line);
  g.fillStyle = ink;
  drawTimeAxis(g, width, height, space);
  if (drag && drag.moved) {
    g.globalAlpha = .2;
    g.fillStyle = style('--emulated');
    g.fillRect(Math.min(drag.x, drag.now), 0, Math.abs(drag.now - drag.x), height - 18);
    g.globalAlpha = 1;
  }
}

const timeAt = x => from + (x - left) / (canvas.clientWidth - left) * (to - from);

function show(begin, end) {
  const least = Math.max(end - begin, 20);
  from = Math.max(0, Math.min(begin, run.cycles - least));
  to = Math.min(Math.max(run.cycles, 20), from + least);
  drawTimeline();
}

function zoom(factor, about = (from + to) / 2) {
  const size = (to - from) * factor;
  show(about - (about - from) * factor, about - (about - from) * factor + size);
}

canvas.addEventListener('pointerdown', e => {
  drag = {x: e.offsetX, now: e.offsetX, moved: false};
  canvas.setPointerCapture(e.pointerId);
});

function tellTraffic(x) {
  const buckets = Math.max(1, Math.floor((canvas.clientWidth - left) / traffic.bucket)),
        share =
            trafficShares(buckets)[Math.min(buckets - 1, Math.floor((x - left) / traffic.bucket))];
  tell(
      byId('told'),
      `memory: ${percent(share)} of ${run.bandwidth.toFixed(1)} bytes a cycle at ${
          Math.round(timeAt(x))}`);
}

function tellEvent(lane, t) {
  if (!lane) return;
  const k = firstAfter(lane.done, t);
  if (k >= lane.start.length || lane.start[k] > t) {
    tell(byId('told'), `${lane.name}: idle at ${Math.round(t)}`);
    return;
  }
  const waited = lane.stall[k] ? `, waited most for ${run.causes[lane.stall[k]]}` : '',
        moved = lane.moved[k] ? `, ${count(lane.moved[k])} bytes` : '';
  tell(
      byId('told'),
      `${lane.name}: ${run.ops[lane.op[k]]} of ${layerText(lane.layer[k])}, ${lane.start[k]} to ${
          lane.done[k]} (${lane.done[k] - lane.start[k]} cycles)${moved}${waited}`,
      lane.layer[k]);
}

canvas.addEventListener('pointermove', e => {
  if (drag) {
    drag.now = e.offsetX;
    drag.moved ||= Math.abs(drag.now - drag.x) > 4;
    drawTimeline();
    return;
  }
  if (e.offsetX < left) return;
  if (hasTraffic && e.offsetY >= traffic.top)
    tellTraffic(e.offsetX);
  else
    tellEvent(lanes[Math.floor(e.offsetY / rowHeight)], timeAt(e.offsetX));
});

canvas.addEventListener('pointerup', e => {
  if (drag && drag.moved)
    show(Math.min(timeAt(drag.x), timeAt(e.offsetX)), Math.max(timeAt(drag.x), timeAt(e.offsetX)));
  drag = null;
  drawTimeline();
});

canvas.addEventListener('dblclick', () => show(0, run.cycles));

canvas.addEventListener('wheel', e => {
  if (!e.ctrlKey) return;
  e.preventDefault();
  zoom(e.deltaY > 0 ? 1.25 : .8, timeAt(e.offsetX));
}, {passive: false});

canvas.addEventListener('keydown', e => {
  const move = {ArrowLeft: -.2, ArrowRight: .2}[e.key];
  if (move)
    show(from + move * (to - from), to + move * (to - from));
  else if (e.key === '+' || e.key === '=')
    zoom(.6);
  else if (e.key === '-')
    zoom(1.6);
  else if (e.key === '0')
    show(0, run.cycles);
  else
    return;
  e.preventDefault();
});

byId('closer').onclick = () => zoom(.5);
byId('farther').onclick = () => zoom(2);
byId('earlier').onclick = () => show(from - .5 * (to - from), to - .5 * (to - from));
byId('later').onclick = () => show(from + .5 * (to - from), to + .5 * (to - from));
byId('whole').onclick = () => show(0, run.cycles);

const showLayer = i => {
  const l = run.layers[i];
  show(l.start - .05 * (l.done - l.start), l.done + .05 * (l.done - l.start));
  byId('timeline').scrollIntoView({block: 'center'});
  tell(byId('told'), `${layerText(i)}: ${l.start} to ${l.done}`, i);
};

// --- The colours of the largest layers; under the pointer one stands out, a click shows it.
const kLargest = 12;

function fillLegend() {
  const order = run.layers.map((layer, i) => i).filter(i => run.layers[i].cycles > 0);
  order.sort((a, b) => run.layers[b].cycles - run.layers[a].cycles || a - b);
  for (const i of order.slice(0, kLargest)) {
    const button = document.createElement('button'), colour = document.createElement('i'),
          item = document.createElement('li'), share = document.createElement('small');
    colour.style.background = hue(i);
    share.textContent = ' ' + percent(run.layers[i].cycles / Math.max(run.cycles, 1));
    button.append(colour, layerText(i), share);
    button.onpointerenter = button.onfocus = () => mark(i);
    button.onpointerleave = button.onblur = () => mark(null);
    button.onclick = () => showLayer(i);
    item.append(button);
    byId('largest').append(item);
  }
}

function mark(layer) {
  marked = layer;
  drawTimeline();
  drawMemory();
}

// --- Memory: what lies in the scratchpad, instructions of the Program to the right, bytes upwards.
const memory = byId('memory'), mapLeft = 74, mapHeight = 240, mapBottom = 34;

// About the cycle in which an instruction begins.
function cycleOf(map, instruction) {
  const of = map.begins;
  for (let k = 2; k < of.length; k += 2)
    if (instruction <= of[k]) {
      const share = (instruction - of[k - 2]) / Math.max(of[k] - of[k - 2], 1);
      return of[k - 1] + Math.max(0, share) * (of[k + 1] - of[k - 1]);
    }
  return null;
}

function drawMapAxes(g, map, width) {
  const space = width - mapLeft, kib = map.capacity / 1024, ink = style('--soft');
  g.fillStyle = ink;
  const up = 2 ** Math.ceil(Math.log2(kib / 6));
  for (let at = 0; at <= kib; at += up) {
    const y = mapHeight * (1 - at / kib);
    g.fillRect(mapLeft - 4, Math.min(y, mapHeight - .5), 4, .5);
    g.fillText(`${Number(at.toPrecision(4))} KiB`, 0, Math.min(Math.max(y + 4, 9), mapHeight));
  }
  const step = Math.max(1, niceStep(Math.max(map.instructions, 1), Math.max(2, space / 90)));
  for (let at = 0; at <= map.instructions; at += step) {
    const x = mapLeft + at / Math.max(map.instructions, 1) * space, cycle = cycleOf(map, at);
    g.fillRect(x, 0, .5, mapHeight + 4);
    const texts = [count(at), cycle === null ? '' : '~' + count(cycle)];
    texts.forEach(
        (text, i) => g.fillText(
            text, Math.min(x, width - g.measureText(text).width), mapHeight + 15 + 14 * i));
  }
  g.fillText('instruction', 0, mapHeight + 15);
  g.fillText('cycle', 0, mapHeight + 29);
}

function drawMemory() {
  if (!memory) return;
  const map = run.memory[+byId('program').value], width = memory.clientWidth,
        g = cleared(memory, mapHeight + mapBottom),
        perInstruction = (width - mapLeft) / Math.max(map.instructions, 1),
        perByte = mapHeight / map.capacity;
  g.fillStyle = style('--code');
  g.fillRect(mapLeft, 0, width - mapLeft, mapHeight);
  for (let k = 0; k < map.blocks.length; k += 5) {
    const [offset, bytes, first, last, layer] = map.blocks.slice(k, k + 5);
    g.globalAlpha = strength(layer);
    g.fillStyle = hue(layer);
    g.fillRect(
        mapLeft + first * perInstruction, mapHeight - (offset + bytes) * perByte,
        Math.max((last + 1 - first) * perInstruction - .2, .4), Math.max(bytes * perByte - .3, .4));
  }
  g.globalAlpha = 1;
  drawMapAxes(g, map, width);
}

function tellBlock(e) {
  const map = run.memory[+byId('program').value],
        at = Math.floor((e.offsetX - mapLeft) / (memory.clientWidth - mapLeft) * map.instructions),
        byte = Math.floor((1 - e.offsetY / mapHeight) * map.capacity), line = byId('memory-told');
  if (at < 0 || byte < 0) return;
  const cycle = cycleOf(map, at), when = cycle === null ? '' : `, about cycle ${Math.round(cycle)}`;
  for (let k = 0; k < map.blocks.length; k += 5) {
    const [offset, bytes, first, last, layer] = map.blocks.slice(k, k + 5);
    if (first > at || at > last || offset > byte || byte >= offset + bytes) continue;
    tell(
        line,
        `${layerText(layer)}: ${bytes} bytes at ${offset}, instructions ${first} to ${last}${when}`,
        layer);
    return;
  }
  tell(line, `instruction ${at}${when}: nothing at byte ${byte}`);
}

if (memory) {
  for (const [i, map] of run.memory.entries()) byId('program').add(new Option(map.name, i));
  byId('program').hidden = run.memory.length < 2;
  byId('program').onchange = drawMemory;
  memory.addEventListener('pointermove', tellBlock);
}

// --- Roofline: products for each byte of DRAM against products for each cycle, both logarithmic.
function drawRoofline() {
  const pointOf = (l, i) =>
      ({i, l, x: l.macs / Math.max(l.dram, 1), y: l.macs / Math.max(l.cycles, 1)});
  const points = run.layers.map(pointOf).filter(p => p.l.macs > 0 && p.l.cycles > 0);
  const W = Math.max(320, Math.min(900, byId('roofline').clientWidth)), H = 320, L = 48, B = 34;
  const low = Math.min(.5, ...points.map(p => p.x)) / 1.5,
        high = Math.max(run.peak / run.bandwidth * 20, ...points.map(p => p.x)) * 1.5;
  const floor = Math.min(run.peak / 64, ...points.map(p => p.y)) / 1.5, roof = run.peak * 1.6;
  const X = v => L + (W - L - 8) * Math.log(v / low) / Math.log(high / low),
        Y = v => 8 + (H - B - 8) * (1 - Math.log(v / floor) / Math.log(roof / floor));
  let out = `<svg viewBox="0 0 ${W} ${H}" role="img" aria-label="roofline">`;
  for (let v = 10 ** Math.ceil(Math.log10(low)); v < high; v *= 10)
    out += `<path class="grid" d="M${X(v)} 8V${H - B}"/><text x="${X(v)}" y="${
        H - 18}" text-anchor="middle">${v < 1 ? v.toFixed(1) : count(v)}</text>`;
  for (let v = 10 ** Math.ceil(Math.log10(floor)); v < roof; v *= 10)
    out += `<path class="grid" d="M${L} ${Y(v)}H${W - 8}"/><text x="${L - 6}" y="${
        Y(v) + 4}" text-anchor="end">${v < 1 ? v.toFixed(1) : count(v)}</text>`;
  const ridge = run.peak / run.bandwidth, begin = Math.max(low, floor / run.bandwidth);
  out +=
      `<path class="roof" d="M${X(begin)} ${Y(begin * run.bandwidth)}L${X(Math.max(ridge, low))} ${
          Y(Math.min(run.peak, Math.max(ridge, low) * run.bandwidth))}H${W - 8}"/>`;
  out += `<text x="${W - 10}" y="${Y(run.peak) - 6}" text-anchor="end">${
      run.peak} MAC per cycle</text>`;
  out += `<text x="${W / 2}" y="${H - 3}" text-anchor="middle">MAC per byte of DRAM (${
      run.bandwidth.toFixed(1)} bytes per cycle)</text>`;
  const most = Math.max(...points.map(p => p.l.cycles), 1);
  for (const p of points)
    out += `<circle data-layer="${p.i}" cx="${X(p.x)}" cy="${Y(p.y)}" r="${
        3 + 9 * Math.sqrt(p.l.cycles / most)}" fill="${hue(p.i)}"><title></title></circle>`;
  byId('roofline').innerHTML = out + '</svg>';
  for (const circle of byId('roofline').querySelectorAll('circle')) {
    const l = run.layers[+circle.dataset.layer];
    circle.querySelector('title').textContent =
        `${layerText(+circle.dataset.layer)}: ${count(l.macs)} MACs, ${count(l.dram)} bytes, ${
            count(l.cycles)} cycles, ${percent(l.macs / (l.cycles * run.peak))}`;
    circle.onclick = () => showLayer(+circle.dataset.layer);
  }
}

// --- What if: each layer grows or shrinks as the engine that is busiest in it.
const changes = ['rows', 'columns', 'bandwidth', 'clock'].map(byId);

// Cycles of the array for all products of a layer.
function arrayCycles(products, rows, columns) {
  // Where sums stay, rows are positions, and a term of all of them goes in a cycle.
  const byChannel = Math.ceil(products.count / columns) * products.rows * products.terms;
  if (run.array.keeps_sums) {
    const folds = products.count * Math.ceil(products.rows / rows) *
        Math.ceil(products.columns / columns);
    return products.columns > 1 ? folds * products.terms :
                                  Math.min(folds * products.terms, byChannel);
  }
  const passes =
      products.count * Math.ceil(products.terms / rows) * Math.ceil(products.columns / columns);
  // A pass takes as many cycles as the next weights take to come in, at least.
  const pass = run.array.loads_weights ? Math.max(products.rows, rows) : products.rows;
  if (products.columns > 1 || !run.array.takes_channels) return passes * pass;
  return Math.min(passes * pass, byChannel);
}

// How often as long the array takes for a layer; as much as it is smaller where the shape is not
// known.
function arrayFactor(layer, change) {
  if (!layer.products) return 1 / (change.rows * change.columns);
  const {rows, columns} = run.array;
  return arrayCycles(layer.products, rows * change.rows, columns * change.columns) /
      arrayCycles(layer.products, rows, columns);
}

function estimate(change) {
  let cycles = 0;
  for (const layer of run.layers) {
    // Scaling and writing sums goes by columns; memory is as fast as before when the clock is not.
    // Engines of all cores work side by side; they share the memory.
    const dma = Math.max(layer.transfer / run.cores, layer.dram / run.bandwidth,
                         layer.second / run.second_bandwidth),
          matrix = layer.matrix / run.cores, requant = layer.requant / run.cores,
          vector = layer.vector / run.cores,
          now = Math.max(matrix, dma, requant, vector, 1e-9),
          then = Math.max(
              matrix * arrayFactor(layer, change), dma * change.clock / change.bandwidth,
              requant / change.columns, vector, 1e-9);
    cycles += layer.cycles * then / now;
  }
  return cycles;
}

function answer() {
  const change = Object.fromEntries(changes.map(field => [field.id, 2 ** +field.value])),
        cycles = estimate(change), clock = run.clock_mhz * change.clock,
        milliseconds = cycles / clock / 1000, before = run.cycles / run.clock_mhz / 1000;
  const shown = {
    rows: +(run.array.rows * change.rows).toPrecision(4),
    columns: +(run.array.columns * change.columns).toPrecision(4),
    bandwidth: `${(run.bandwidth * change.bandwidth * run.clock_mhz / 1000).toFixed(1)} GB/s`,
    clock: `${Math.round(clock)} MHz`,
  };
  for (const [id, text] of Object.entries(shown)) byId(id + '-is').textContent = text;
  byId('answer').textContent = `about ${count(cycles)} cycles, ${milliseconds.toFixed(2)} ms: ${
      (before / milliseconds).toFixed(2)}x as fast`;
}

for (const field of changes) field.oninput = answer;

// --- Layers: every column sorts; a click on a row shows it in the timeline.
const table = byId('layers'), body = table.tBodies[0], rows = [...body.rows];
const heads = [...table.tHead.rows[0].cells], order = byId('order');

function sortBy(column, down) {
  const head = heads[column], isNumber = head.classList.contains('n');
  for (const other of heads) other.removeAttribute('aria-sort');
  head.setAttribute('aria-sort', down ? 'descending' : 'ascending');
  order.value = column;
  const key = row => isNumber ? +row.cells[column].dataset.v : row.cells[column].textContent;
  const compared = (a, b) => {
    if (key(a) < key(b)) return -1;
    if (key(a) > key(b)) return 1;
    return a.dataset.i - b.dataset.i;
  };
  rows.sort((a, b) => compared(a, b) * (down ? -1 : 1));
  body.append(...rows);
}

for (const [column, head] of heads.entries()) {
  head.onclick = () => sortBy(column, head.getAttribute('aria-sort') !== 'descending');
  // Where the head is not seen, this orders the rows.
  if (head.textContent)
    order.add(new Option(column ? 'by ' + head.textContent : 'in order', column));
}

order.onchange = () =>
    sortBy(+order.value, +order.value > 0 && heads[order.value].classList.contains('n'));
for (const row of rows) row.onclick = () => showLayer(+row.dataset.i);

byId('find').oninput = () => {
  const wanted = byId('find').value.toLowerCase();
  for (const row of rows) row.hidden = !row.textContent.toLowerCase().includes(wanted);
};

fillLegend();
drawTimeline();
drawMemory();
drawRoofline();
answer();

new ResizeObserver(() => {
  drawTimeline();
  drawMemory();
  drawRoofline();
}).observe(document.querySelector('main'));

// Behind the first frame: what is seen can be used. scripts/nightly_npu_page.py reads it.
requestAnimationFrame(() => setTimeout(() => performance.mark('interactive')));

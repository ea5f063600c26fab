"""The tables of the NPU: spec/npu/{isa,config,regs,trace}.toml to C++ tables, SystemVerilog packages and manual pages."""
import hashlib
import json

TEXTS = {"text", "unit", "draw"}              # what says nothing about bits
KINDS = ["uint", "int", "hex", "scratchpad", "far", "acc", "index", "mask"]


class NpuError(Exception):
    pass


def need(condition, message):
    if not condition:
        raise NpuError(message)


def camel(name):
    return "".join(part[:1].upper() + part[1:] for part in name.replace(".", "_").split("_"))


def quote(text):
    return '"' + str(text).replace("\\", "\\\\").replace('"', '\\"') + '"'


def bare(value):
    """The same without prose: a better sentence is no other instruction set."""
    if isinstance(value, dict):
        return {k: bare(v) for k, v in value.items() if k not in TEXTS}
    return [bare(v) for v in value] if isinstance(value, list) else value


def ofHardware(records):
    """The operations, or members of an enum, that hardware has, not models alone."""
    return {name: record for name, record in records.items() if not record.get("model_only")}


def table(header, rows):
    return ["| " + " | ".join(header) + " |", "|" + "---|" * len(header)] + \
           ["| " + " | ".join(str(c).replace("|", "\\|") for c in row) + " |" for row in rows] + [""]


class Npu:
    def __init__(self, load, root, note):
        self.note = note
        self.isa, self.config, self.regs, self.trace = (load(root / f"spec/npu/{n}.toml") for n in ["isa", "config", "regs", "trace"])
        # Codes of faults are no part of what a program depends on.
        hashed = {name: part for name, part in self.regs.items() if name != "fault"}
        isa = {**self.isa, "op": ofHardware(self.isa["op"]), "enum": {name: ofHardware(members) for name, members in self.isa["enum"].items()}}
        digest = hashlib.sha256(json.dumps(bare([isa, self.hardwareConfig(), hashed]), sort_keys=True).encode())
        self.hash = int.from_bytes(digest.digest()[:8], "big")
        self.enums, self.engines = self.isa["enum"], self.isa["engine"]
        self.ops, self.descriptors = self.isa["op"], self.isa["descriptor"]
        for what, records in [("operations", self.ops), *[(f"members of {name}", members) for name, members in self.enums.items()]]:
            need([*records][:len(ofHardware(records))] == [*ofHardware(records)], f"isa.toml: {what} of models alone stand behind all others")
        self.header = self.placed("header", self.isa["header"], 0, 32)
        for name, op in self.ops.items():
            op["fields"] = self.placed(f"op {name}", op["fields"], 32, self.isa["word_bits"])
            for engine in op["engines"]:
                need(any(e.rstrip("0123456789") == engine for e in self.engines), f"isa.toml: op {name}: no engine {engine}")
            need(op.get("second", "rescale") in self.descriptors, f"isa.toml: op {name}: no descriptor {op.get('second')}")
        for name, record in self.descriptors.items():
            record["fields"] = self.placed(f"descriptor {name}", record["fields"], 0, self.isa["descriptor_bits"])
        for where, records, key in [("op", self.ops, "opcode"), ("engine", self.engines, "id"), ("counter", self.regs["counter"], "id"),
                                    *[(f"enum {n}", e, "id") for n, e in self.enums.items()]]:
            numbers = [r[key] for r in records.values()]
            need(len(set(numbers)) == len(numbers), f"spec/npu: two of {where} share a number")
        need(max(c["id"] for c in self.regs["counter"].values()) < self.regs["pmu"]["per_slot"], "regs.toml: too many counters")
        taken = {}
        for name, register in self.regs["register"].items():
            for i in range(register.get("count", 1)):
                at = register["offset"] + 4 * i
                need(at % 4 == 0 and at < self.regs["pmu"]["offset"] and at not in taken, f"regs.toml: {name} and {taken.get(at)} at {at:#x}")
                taken[at] = name

    def hardwareConfig(self):
        """The keys as the hardware description has them: without those, and the values, of the model alone."""
        keys = {name: {part: value for part, value in key.items() if part != "model_any"}
                for name, key in self.config["key"].items() if not key.get("model_only")}
        return {**self.config, "key": keys}

    def placed(self, where, fields, low, end):
        """The fields with their lowest bit, `lsb`."""
        out, names = [], set()
        for field in fields:
            low = max(low, field.get("at", low))
            need("at" not in field or field["at"] == low, f"isa.toml: {where}: {field['name']} overlaps what is before it")
            need(field["name"] not in names, f"isa.toml: {where}: two fields {field['name']}")
            kind, _, of = field.get("kind", "uint").partition(":")
            need(kind in KINDS or (kind == "enum" and of in self.isa["enum"]) or (kind == "descriptor" and of in self.isa["descriptor"]),
                 f"isa.toml: {where}: {field['name']} has unknown kind {field.get('kind')}")
            out.append({**field, "lsb": low, "kind": kind, "of": of, "minus_one": field.get("minus_one", False)})
            low += field["bits"]
            names.add(field["name"])
        for field in sorted((f for f in out if "more" in f), key=lambda f: f["more_at"]):
            need(field["kind"] == "int" and field["more_at"] >= low, f"isa.toml: {where}: more bits of {field['name']} overlap what is before them")
            low = field["more_at"] + field["more"]
        need(low <= end, f"isa.toml: {where}: {low} bits, {end} are there")
        return out

    # --- C++ -----------------------------------------------------------------------------------------------------------
    def namesInc(self):
        isa, out = self.isa, [f"// {self.note}", ""]
        out += [f"inline constexpr uint64_t kSpecHash = {self.hash:#018x};"]
        out += [f"inline constexpr int k{camel(k)} = {isa[k]};" for k in
                ["version", "descriptors", "index_registers", "semaphores", "semaphore_max", "descriptor_bits"]]
        for name, members in [("Engine", {n: e["id"] for n, e in self.engines.items()}),
                              ("Op", {n: o["opcode"] for n, o in self.ops.items()}),
                              ("DescriptorKind", {n: i for i, n in enumerate(self.descriptors)}),
                              *[(camel(n) + ("" if n == "type" else "Fn"), {m: r["id"] for m, r in e.items()}) for n, e in self.enums.items()]]:
            out += [f"enum class {name} : uint8_t {{ " + ", ".join(f"k{camel(m)} = {v}" for m, v in members.items()) + " };"]
        return "\n".join(out + [f"inline constexpr int kEngineCount = {max(e['id'] for e in self.engines.values()) + 1};", ""])

    def isaInc(self):
        out = [f"// {self.note}", ""]
        out += ["inline constexpr std::string_view kEngineNames[] = {" + ", ".join(quote(n) for n in self.engines) + "};"]
        for name, members in self.enums.items():
            out += [f"inline constexpr EnumMember k{camel(name)}Members[] = {{" +
                    ", ".join(f"{{{quote(m)}, {r['id']}}}" for m, r in members.items()) + "};"]
        out += ["inline constexpr EnumInfo kEnums[] = {"] + [f"    {{{quote(n)}, k{camel(n)}Members, {len(ofHardware(members))}}}," for n, members in self.enums.items()] + ["};", ""]
        enum_index = {n: i for i, n in enumerate(self.enums)}
        desc_index = {n: i for i, n in enumerate(self.descriptors)}

        def fields(name, list_):
            if not list_:
                return
            out.append(f"inline constexpr FieldInfo {name}[] = {{")
            for f in list_:
                of = enum_index[f["of"]] if f["kind"] == "enum" else desc_index[f["of"]] if f["kind"] == "descriptor" else 0
                out.append(f"    {{{quote(f['name'])}, {f['lsb']}, {f['bits']}, FieldKind::k{camel(f['kind'])}, {of}, "
                           f"{str(f['minus_one']).lower()}, {f.get('more_at', 0)}, {f.get('more', 0)}}},")
            out.append("};")

        def indices(space, list_):
            out.append(f"namespace {space} {{ enum : int {{ " + ", ".join(f"k{camel(f['name'])}" for f in list_) + " }; }")
        fields("kHeaderFields", self.header)
        indices("header", self.header)
        for n, d in self.descriptors.items():
            fields(f"k{camel(n)}Fields", d["fields"])
            indices(f"descriptor::{n}", d["fields"])
        for n, o in self.ops.items():
            fields(f"k{camel(n)}OpFields", o["fields"])
            if o["fields"]:
                indices(f"field::{n}", o["fields"])
        out += ["inline constexpr DescriptorInfo kDescriptorTable[] = {"]
        out += [f"    {{{quote(n)}, k{camel(n)}Fields}}," for n in self.descriptors] + ["};"]
        out += ["inline constexpr OpInfo kOpTable[] = {"]
        for n, o in self.ops.items():
            mask = sum(1 << e["id"] for name, e in self.engines.items() if name.rstrip("0123456789") in o["engines"])
            span = f"k{camel(n)}OpFields" if o["fields"] else "{}"
            out.append(f"    {{Op::k{camel(n)}, {quote(n)}, {mask:#x}, {span}, {desc_index.get(o.get('second'), -1)}}},")
        out += ["};", "/// The first so many of them are in hardware; those behind them models alone have.",
                f"inline constexpr size_t kHardwareOps = {len(ofHardware(self.ops))};"]
        return "\n".join(out + [""])

    def regsInc(self):
        regs, out = self.regs, [f"// {self.note}", ""]
        out += [f"enum class Counter : uint8_t {{ " + ", ".join(f"k{camel(n)} = {c['id']}" for n, c in regs["counter"].items()) + " };"]
        out += [f"enum class RegionClass : uint8_t {{ " + ", ".join(f"k{camel(n)} = {c['id']}" for n, c in regs["class"].items()) + " };"]
        out += [f"inline constexpr int kCounterSlots = {regs['pmu']['per_slot']};", f"inline constexpr int kSnapshotSlots = {regs['pmu']['slots']};",
                f"inline constexpr uint32_t kPmuOffset = {regs['pmu']['offset']:#x}, kSnapshotOffset = {regs['pmu']['snapshot_offset']:#x};"]
        out += ["inline constexpr CounterInfo kCounters[] = {"]
        out += [f"    {{{quote(n)}, Counter::k{camel(n)}, {str(c.get('timing', False)).lower()}}}," for n, c in regs["counter"].items()]
        out += ["};", "inline constexpr std::string_view kRegionClassNames[] = {" + ", ".join(quote(n) for n in regs["class"]) + "};"]
        out += ["inline constexpr std::string_view kFaultNames[] = {" + ", ".join(quote(f["title"]) for f in regs["fault"].values()) + "};"]
        out += ["inline constexpr RegisterInfo kRegisters[] = {"]
        out += [f"    {{{quote(n)}, {r['offset']:#x}, {r.get('count', 1)}, {str(r['access'] != 'ro').lower()}, {str(r.get('program', False)).lower()}}},"
                for n, r in regs["register"].items()]
        return "\n".join(out + ["};", ""])

    def grammarInc(self):
        out = [f"// {self.note}", ""]

        def draws(name, fields):
            def span(f):
                low, high = f.get("draw", [0, int(f["kind"] == "uint" and f["bits"] == 1)])
                most = (1 << f["bits"]) - (not f["minus_one"])
                need(f["minus_one"] <= low <= high <= most or "draw" not in f, f"isa.toml: {name}: {f['name']} is drawn beyond {most}")
                return "{" + f"{low}, {high}, {str('draw' in f or high > 0).lower()}" + "}"
            out.append(f"inline constexpr Draw k{name}Draws[] = {{" + ", ".join(span(f) for f in fields) + "};")
        for n, d in self.descriptors.items():
            draws(camel(n), d["fields"])
        ops = [n for n, o in self.ops.items() if o["fields"]]
        for n in ops:
            draws(f"{camel(n)}Op", self.ops[n]["fields"])
        out += ["inline constexpr std::span<const Draw> kDescriptorDraws[] = {" + ", ".join(f"k{camel(n)}Draws" for n in self.descriptors) + "};"]
        out += ["inline constexpr std::span<const Draw> kOpDraws[] = {" +
                ", ".join(f"k{camel(n)}OpDraws" if n in ops else "{}" for n in self.ops) + "};"]
        return "\n".join(out + [""])

    def traceInc(self):
        out, fields = [f"// {self.note}", ""], self.trace["field"]
        out += ["namespace trace { enum : int { " + ", ".join(f"k{camel(n)}" for n in fields) + ", kCount }; }"]
        out += ["inline constexpr TraceFieldInfo kTraceFields[] = {"]
        out += [f"    {{{quote(n)}, {f['bits']}, TraceKind::k{camel(f.get('kind', 'uint'))}, {str(f.get('timing', False)).lower()}}}," for n, f in fields.items()]
        return "\n".join(out + ["};", "", *self.profileInc(), ""])

    def profileInc(self):
        """Where the fields of a profile record lie, in bytes."""
        places, bits = [], 0
        for name, field in self.trace["profile"].items():
            places.append(f"k{camel(name)} = {bits // 8}")
            bits += field["bits"]
        return ["namespace profile { enum : int { " + ", ".join([*places, f"kBytes = {bits // 8}"]) + " }; }"]

    def configInc(self):
        out, keys = [f"// {self.note}", ""], self.config["key"]
        out += ["namespace key { enum : int { " + ", ".join(f"k{camel(n)}" for n in keys) + ", kCount }; }"]
        for n, k in keys.items():
            if "values" in k:
                out += [f"inline constexpr std::string_view k{camel(n)}Values[] = {{" + ", ".join(quote(v) for v in k["values"]) + "};"]
        out += ["inline constexpr KeyInfo kKeys[] = {"]
        for n, k in keys.items():
            text = k["type"] == "string"
            number = k.get("default", 0) if not text else k["values"].index(k["default"]) if "values" in k else 0
            need(not (k.get("model_only") and k.get("model_any")), f"config.toml: {n}: model_only and model_any")
            need(k.get("log2") or not k.get("model_any"), f"config.toml: {n}: model_any without log2")
            hardware = "kDefault" if k.get("model_only") else "kPowersOfTwo" if k.get("model_any") else "kEvery"
            log2 = k.get("log2", False) and not k.get("model_any", False)
            out.append(f"    {{{quote(n)}, {quote(k.get('unit', ''))}, {quote(k['text'])}, {str(text).lower()}, {k.get('min', 0)}, "
                       f"{k.get('max', 0)}, {number}, {str(log2).lower()}, {str(k.get('hashed', True)).lower()}, Hardware::{hardware}, "
                       + (f"k{camel(n)}Values" if "values" in k else "{}") + "},")
        return "\n".join(out + ["};", ""])

    # --- SystemVerilog: most significant field first ----------------------------------------------------------------------
    def svStruct(self, name, fields, width):
        rows, next_, spare = [], 0, 0
        upper = [{"name": f"{f['name']}_more", "lsb": f["more_at"], "bits": f["more"], "kind": "uint"} for f in fields if "more" in f]
        for f in [*fields, *sorted(upper, key=lambda f: f["lsb"]), {"name": None, "lsb": width, "bits": 0}]:
            if f["lsb"] > next_:
                rows.append(f"    logic [{f['lsb'] - next_ - 1}:0] reserved{spare};")
                spare += 1
            if f["bits"]:
                sign = " signed" if f["kind"] == "int" else ""
                rows.append(f"    logic{sign} [{f['bits'] - 1}:0] {f['name']}_f;")
            next_ = f["lsb"] + f["bits"]
        return ["  typedef struct packed {"] + rows[::-1] + [f"  }} {name}_t;", ""]

    def svEnum(self, name, members, width):
        rows = [f"    {n.upper()} = {width}'d{v}" for n, v in members.items()]
        return [f"  typedef enum logic [{width - 1}:0] {{", ",\n".join(rows), f"  }} {name}_e;", ""]

    def isaSv(self):
        isa, out = self.isa, [f"// {self.note}", "package cdl_npu_isa_pkg;", ""]
        out += [f"  localparam logic [63:0] SpecHash = 64'h{self.hash:016x};"]
        out += [f"  localparam int unsigned {camel(k)} = {isa[k]};" for k in
                ["word_bits", "descriptor_bits", "descriptors", "index_registers", "semaphores", "semaphore_max"]] + [""]
        out += self.svEnum("engine", {f"ENGINE_{n}": e["id"] for n, e in self.engines.items()}, 4)
        out += self.svEnum("opcode", {f"OP_{n}": o["opcode"] for n, o in ofHardware(self.ops).items()}, 8)
        for n, members in self.enums.items():
            width = next(f["bits"] for r in [*self.ops.values(), *self.descriptors.values()] for f in r["fields"] if f["of"] == n)
            out += self.svEnum(n, {f"{n}_{m}": r["id"] for m, r in ofHardware(members).items()}, width)
        out += self.svStruct("header", self.header, 32)
        for n, d in self.descriptors.items():
            out += self.svStruct(f"desc_{n}", d["fields"], isa["descriptor_bits"])
        for n, o in ofHardware(self.ops).items():
            out += self.svStruct(f"insn_{n}", self.header + o["fields"], isa["word_bits"])
        return "\n".join(out + ["endpackage", ""])

    def cfgSv(self):
        out = [f"// {self.note}", "// The defaults of spec/npu/config.toml.", "package cdl_npu_cfg_pkg;", ""]
        out += [f"  localparam longint unsigned {camel(n)} = 64'd{k['default']};" for n, k in self.hardwareConfig()["key"].items() if k["type"] == "int"]
        return "\n".join(out + ["", "endpackage", ""])

    def regsSv(self):
        regs, out = self.regs, [f"// {self.note}", "package cdl_npu_regs_pkg;", ""]
        out += [f"  localparam logic [15:0] Reg{camel(n.lower())} = 16'h{r['offset']:04x};" for n, r in regs["register"].items()]
        out += [f"  localparam logic [15:0] Pmu = 16'h{regs['pmu']['offset']:04x};", f"  localparam logic [15:0] Snapshot = 16'h{regs['pmu']['snapshot_offset']:04x};", ""]
        out += self.svEnum("counter", {f"COUNTER_{n}": c["id"] for n, c in regs["counter"].items()}, 6)
        out += self.svEnum("region_class", {f"REGION_{n}": c["id"] for n, c in regs["class"].items()}, 3)
        out += self.svEnum("fault", {f"FAULT_{n}": f["code"] for n, f in regs["fault"].items()}, 4)
        return "\n".join(out + ["endpackage", ""])

    def traceSv(self):
        out = [f"// {self.note}", "package cdl_npu_trace_pkg;", ""]
        for name, table in (("retire", "field"), ("profile", "profile")):
            fields, low = [], 0
            for field, facts in self.trace[table].items():
                fields.append({"name": field, "lsb": low, "bits": facts["bits"], "kind": "uint"})
                low += facts["bits"]
            out += [f"  localparam int unsigned {camel(name)}Bits = {low};", "", *self.svStruct(name, fields, low)]
        return "\n".join(out + ["endpackage", ""])

    # --- Manual ------------------------------------------------------------------------------------------------------------
    def fieldRows(self, fields):
        def kind(f):
            return (f"{f['kind']} {f['of']}".strip() if f["kind"] != "uint" else "") + (", less one" if f["minus_one"] else "")

        def bits(f):
            upper = f"{f['more_at'] + f['more'] - 1}..{f['more_at']}, " if "more" in f else ""
            return upper + (f"{f['lsb'] + f['bits'] - 1}..{f['lsb']}" if f["bits"] > 1 else str(f["lsb"]))
        return table(["bits", "field", "kind", "meaning"], [[bits(f), f"`{f['name']}`", kind(f).strip(", "), f["text"]] for f in fields])

    def isaMd(self):
        isa, out = self.isa, [f"<!-- {self.note} -->", "# The NPU's instruction set", ""]
        out += [f"Version {isa['version']}, hash `{self.hash:016x}`. Words of {isa['word_bits']} bits, little-endian; {isa['descriptors']} descriptors "
                f"d0..d{isa['descriptors'] - 1} of {isa['descriptor_bits']} bits; {isa['index_registers']} index registers x0.. of 32 bits, x0 is 0; "
                f"{isa['semaphores']} counting semaphores s0.. up to {isa['semaphore_max']}. Reserved bits are 0. `less one`: the field holds its value less one. "
                "Of a field in two parts the upper one is inverted where the top bit of the lower one is 1: zeros for a value that fits the lower one. "
                "Arithmetic follows [the integer semantics](types.md); sums wrap at 32 bits, those of i16 activations at 40. Floats are of models alone.", ""]
        out += ["## Engines", ""] + table(["id", "engine", "does"], [[e["id"], f"`{n}`", e["text"]] for n, e in self.engines.items()])
        out += ["## Header", "", "Bits 31..0 of every word.", ""] + self.fieldRows(self.header)
        out += ["## Operations", ""]
        for n, o in self.ops.items():
            out += [f"### {n} ({o['opcode']:#04x})", "", o["text"] + (" *Model only.*" if o.get("model_only") else ""), "", f"Engine: {', '.join(o['engines'])}.", ""]
            out += self.fieldRows(o["fields"]) if o["fields"] else []
        out += ["## Descriptors", ""]
        for n, d in self.descriptors.items():
            out += [f"### {n}", "", d["text"], ""] + self.fieldRows(d["fields"])
        out += ["## Values", ""]
        for n, members in self.enums.items():
            out += [f"### of {n}", ""] + table(["value", "name", "meaning"], [[r["id"], f"`{m}`", r["text"] + (" *Model only.*" if r.get("model_only") else "")] for m, r in members.items()])
        return "\n".join(out)

    def regsMd(self):
        regs, pmu, out = self.regs, self.regs["pmu"], [f"<!-- {self.note} -->", "# The NPU's registers and counters", ""]
        out += table(["offset", "register", "access", "meaning"],
                     [[f"`{r['offset']:#05x}`" + (f" + 4 i, i < {r['count']}" if r.get("count") else ""), f"`{n}`",
                       r["access"] + (", program" if r.get("program") else ""), r["text"]] for n, r in regs["register"].items()])
        out += ["## Counters of the PMU", "", f"64 bits each, at `{pmu['offset']:#x}` + 8 id; copies of the {pmu['slots']} snapshots at "
                f"`{pmu['snapshot_offset']:#x}` + 8 ({pmu['per_slot']} slot + id).", ""]
        out += table(["id", "counter", "meaning", ""], [[c["id"], f"`{n}`", c["text"], "timing" if c.get("timing") else ""] for n, c in regs["counter"].items()])
        out += ["## Classes of regions", ""] + table(["class", "name", "meaning"], [[c["id"], f"`{n}`", c["text"]] for n, c in regs["class"].items()])
        out += ["## Faults", "", "What FAULT_CODE holds. The models find all of them; hardware does not look for those that are marked.", ""]
        out += table(["code", "name", "meaning", ""], [[f["code"], f"`{n}`", f["text"], "models alone" if f.get("model") else ""] for n, f in regs["fault"].items()])
        return "\n".join(out)

    def traceMd(self):
        out = [f"<!-- {self.note} -->", "# The trace of an NPU", "", "One record for each instruction that ends, in that order; those of one engine are in the order of the "
               "program. `candela npu run --trace FILE` writes them as CSV, one column for each field that the model knows, engines and operations by name, `crc` in hexadecimal.", ""]
        out += table(["field", "bits", "unit", "meaning", ""], [[f"`{n}`", f["bits"], f.get("unit", ""), f["text"], "timing" if f.get("timing") else ""]
                                                                 for n, f in self.trace["field"].items()])
        out += ["## Profile records", "", "What hardware itself writes, little-endian, into the buffer that PROFILE_LO and PROFILE_BYTES name "
                "([registers](npu_registers.md)) when an instruction with the bit `mark` ends. `candela npu run --engine rtl --profile FILE` "
                "reads them. Writing them takes turns on the memory's port, which the models do not have.", ""]
        return "\n".join(out + table(["field", "bits", "unit", "meaning"], [[f"`{n}`", f["bits"], f.get("unit", ""), f["text"]]
                                                                            for n, f in self.trace["profile"].items()]))

    def configMd(self):
        def range_(key):
            if "values" in key:
                return " ".join(key["values"])
            return f"{key['min']}..{key['max']}" + (", power of two" if key.get("log2") and not key.get("model_any") else "") if "min" in key else "text"

        def alone(key):
            return "but the default" if key.get("model_only") else "no power of two" if key.get("model_any") else ""

        out = [f"<!-- {self.note} -->", "# The NPU's configuration", "", "A TOML file; `section.key` stands below `[section]`. What is missing has its default.", "",
               "Values in the column *model only* have no hardware: `--engine rtl` and `--fidelity exact` refuse them by name, and each report of "
               "`candela simulate` says which of them are in use.", ""]
        return "\n".join(out + table(["key", "range", "default", "unit", "model only", "meaning"], [[
            f"`{n}`", range_(k), k.get("default", ""), k.get("unit", ""), alone(k), k["text"]] for n, k in self.config["key"].items()]))

    def outputs(self):
        return {"simulator/isa/generated/isa_names.inc": self.namesInc, "simulator/isa/generated/isa.inc": self.isaInc, "simulator/isa/generated/registers.inc": self.regsInc,
                "simulator/config/generated/config.inc": self.configInc, "simulator/isa/generated/trace.inc": self.traceInc,
                "simulator/isa/generated/grammar.inc": self.grammarInc,
                "rtl/generated/cdl_npu_trace_pkg.sv": self.traceSv, "docs/reference/npu_trace.md": self.traceMd,
                "rtl/generated/cdl_npu_isa_pkg.sv": self.isaSv, "rtl/generated/cdl_npu_cfg_pkg.sv": self.cfgSv,
                "rtl/generated/cdl_npu_regs_pkg.sv": self.regsSv,
                "docs/reference/npu_isa.md": self.isaMd, "docs/reference/npu_registers.md": self.regsMd,
                "docs/reference/npu_configuration.md": self.configMd}

#!/usr/bin/env python3
"""Holds the places of functions in integrations/onnxruntime/ort_abi.h to headers of ONNX Runtime.

usage: tests/nightly/onnxruntime_slots.py --headers DIR [--abi FILE] [--list]

DIR holds onnxruntime_c_api.h and onnxruntime_ep_c_api.h of any release from 1.24 on (what came later is left out there), as they lie in
include/onnxruntime/core/session of its sources and in include/ of its packages for C; CANDELA_ONNXRUNTIME_HEADERS of the
environment says it too. Read are the order of the functions in OrtApi, OrtEpApi and OrtModelEditorApi, the members of the
records that the provider fills, the numbers of the enumerations, and with which release each function came. --list prints
what was found.

Exit status: 0 all agree, 1 some do not, 2 bad usage, 77 there are no headers.
"""
import argparse
import os
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
TABLES = {"ApiSlot": "OrtApi", "EpApiSlot": "OrtEpApi", "EditorSlot": "OrtModelEditorApi"}
RECORDS = ("OrtApiBase", "OrtEp", "OrtEpFactory", "OrtEpProfilerImpl", "OrtNodeComputeInfo", "OrtNodeFusionOptions")
# What is asked for only where the release has it: the constant that says with which it came.
LATER = {"TensorTypeAndShape_HasShape": "kApiVersionOfRanks", "CreateProfilingEvent": "kApiVersionOfProfiles",
         "ReleaseProfilingEvent": "kApiVersionOfProfiles", "ProfilingEventsContainer_AddEvents": "kApiVersionOfProfiles",
         "OrtEpProfilerImpl": "kApiVersionOfProfiles"}
# Of the enumerations in the header, and how their names become ours.
ENUMS = {
    "ErrorCode": ("OrtErrorCode", "ORT_"),
    "Severity": ("OrtLoggingLevel", "ORT_LOGGING_LEVEL_"),
    "ValueKind": ("ONNXType", "ONNX_TYPE_"),
    "ElementType": ("ONNXTensorElementDataType", "ONNX_TENSOR_ELEMENT_DATA_TYPE_"),
    "AttributeType": ("OrtOpAttrType", "ORT_OP_ATTR_"),
    "EventCategory": ("OrtProfilingEventCategory", "OrtProfilingEventCategory_"),
    "HardwareType": ("OrtHardwareDeviceType", "OrtHardwareDeviceType_"),
    "Compatibility": ("OrtCompiledModelCompatibility", "OrtCompiledModelCompatibility_"),
}
SPELLED = {"Optimal": "EP_SUPPORTED_OPTIMAL", "Unsupported": "EP_UNSUPPORTED", "NotApplicable": "EP_NOT_APPLICABLE",
           "NoSuchFile": "NO_SUCHFILE", "LastOfOneByteOrMore": "FLOAT8E5M2FNUZ"}


class Unreadable(Exception):
    """A header or our file is not as this script reads it."""


def without_comments(text):
    return re.sub(r"//[^\n]*|/\*.*?\*/", " ", text, flags=re.DOTALL)


def body_of(text, name):
    """What stands between the braces of a record, comments and all."""
    begin = re.search(rf"^(?:typedef )?(?:struct|enum) {name}\s*\{{", text, re.MULTILINE)
    end = re.search(r"^\}", text[begin.end():], re.MULTILINE) if begin else None
    if not end:
        raise Unreadable(f"no {name} in the headers")
    return text[begin.end():begin.end() + end.start()]


def member_of(statement):
    """The name of a member, of all forms in which the headers declare one."""
    forms = (r"ORT_API2_STATUS\(\s*(\w+)", r"ORT_API_T\([^,]*,\s*(\w+)", r"\(\s*(?:ORT_API_CALL)?\s*\*\s*(\w+)\)")
    released = re.match(r"ORT_CLASS_RELEASE2?\((\w+)\)", statement)
    if released:
        return f"Release{released.group(1)}"
    for form in forms:
        found = re.search(form, statement)
        if found:
            return found.group(1)
    return re.search(r"(\w+)\s*$", statement).group(1)


def members_of(text, name):
    """[(member, release)] in their order; release is None where the comment before it says none."""
    # The smallest build has no editor: one dummy stands in its place.
    body = re.sub(r"#if defined\(ORT_MINIMAL_BUILD\)\s[^#]*#else(.*)#endif", r"\1", body_of(text, name), flags=re.DOTALL)
    body = re.sub(r"^[ \t]*#[^\n]*$", "", body, flags=re.MULTILINE)
    # A semicolon within a comment ends nothing.
    body = re.sub(r"//[^\n]*|/\*.*?\*/", lambda comment: comment.group().replace(";", ","), body, flags=re.DOTALL)
    members = []
    for statement in body.split(";"):
        code = " ".join(without_comments(statement).split())
        since = re.findall(r"\\since Version 1\.(\d+)", statement)
        if code:
            members.append((member_of(code), int(since[-1]) if since else None))
    return members


def numbers_of(text, name):
    """{name: number} of an enumeration."""
    numbers, following = {}, 0
    for one in without_comments(body_of(text, name)).split(","):
        found = re.match(r"\s*(\w+)\s*(?:=\s*(-?\d+))?\s*$", one)
        if found:
            following = int(found.group(2)) if found.group(2) else following
            numbers[found.group(1)] = following
            following += 1
    return numbers


def our_slots(text):
    """[(table, function, place)]."""
    slots = re.findall(r"^constexpr (\w+)<.*> (\w+)\{(\d+)\};$", text, re.MULTILINE)
    return [(TABLES[kind], name, int(place)) for kind, name, place in slots if kind in TABLES]


def our_records(text):
    """{record: [members]}."""
    records = {}
    for name in RECORDS:
        body = without_comments(body_of(text, name))
        records[name] = [member_of(" ".join(one.split())) for one in body.split(";") if one.strip()]
    return records


def our_enums(text):
    """{enumeration: {name: number}}."""
    bodies = {name: re.search(rf"enum class {name} : int32_t \{{(.*?)\}};", text, re.DOTALL) for name in ENUMS}
    return {name: {one: int(number) for one, number in re.findall(r"(\w+) = (\d+)", found.group(1))}
            for name, found in bodies.items() if found}


def constant(text, name):
    return int(re.search(rf"constexpr uint32_t {name} = (\d+);", text).group(1))


def came_with(ours, name):
    return constant(ours, LATER.get(name, "kApiVersion"))


def check_slots(ours, headers, version):
    tables = {table: members_of(headers, table) for table in TABLES.values()}
    problems = []
    for table, name, place in our_slots(ours):
        if came_with(ours, name) > version:
            continue
        places = [i for i, (member, _) in enumerate(tables[table]) if member == name]
        if places != [place]:
            problems.append(f"{table}.{name} is declared at {place}, the headers have it at {places}")
            continue
        since = tables[table][place][1]
        if since and since > came_with(ours, name):
            problems.append(f"{table}.{name} came with 1.{since}, later than the 1.{came_with(ours, name)} that is asked for")
    return problems


def check_records(ours, headers, version):
    problems = []
    for record, members in our_records(ours).items():
        if came_with(ours, record) > version:
            continue
        theirs = [member for member, _ in members_of(headers, record)]
        members = members[:len(theirs)] if version < constant(ours, "kApiVersionOfProfiles") else members
        if theirs[:len(members)] != members:
            problems.append(f"{record} is declared as {members}, the headers begin with {theirs[:len(members)]}")
    return problems


def check_enums(ours, headers, version):
    problems = []
    for enumeration, numbers in our_enums(ours).items():
        theirs, prefix = ENUMS[enumeration]
        if enumeration == "EventCategory" and version < constant(ours, "kApiVersionOfProfiles"):
            continue
        known = {name.removeprefix(prefix).replace("_", "").lower(): number
                 for name, number in numbers_of(headers, theirs).items()}
        for name, number in numbers.items():
            spelled = SPELLED.get(name, name).replace("_", "").lower()
            if known.get(spelled) != number:
                problems.append(f"{enumeration}::{name} is {number}, {theirs} says {known.get(spelled)}")
    return problems


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--headers", type=pathlib.Path, default=os.environ.get("CANDELA_ONNXRUNTIME_HEADERS"))
    parser.add_argument("--abi", type=pathlib.Path, default=ROOT / "integrations/onnxruntime/ort_abi.h")
    parser.add_argument("--list", action="store_true", help="print the functions that are used, and their places")
    arguments = parser.parse_args()
    if not arguments.headers:
        print("onnxruntime_slots: no headers: CANDELA_ONNXRUNTIME_HEADERS says where they are", file=sys.stderr)
        return 77
    try:
        ours = arguments.abi.read_text()
        headers = "\n".join((pathlib.Path(arguments.headers) / name).read_text()
                            for name in ("onnxruntime_c_api.h", "onnxruntime_ep_c_api.h"))
        found = re.search(r"#define ORT_API_VERSION (\d+)", headers)
        version = int(found.group(1)) if found else 0
        if version < constant(ours, "kApiVersionOfRanks"):
            raise Unreadable("the headers are older than what is declared")
        checks = (check_slots, check_records, check_enums)
        problems = [problem for check in checks for problem in check(ours, headers, version)]
    except (OSError, Unreadable) as error:
        print(f"onnxruntime_slots: {error}", file=sys.stderr)
        return 2
    if arguments.list:
        for table, name, place in our_slots(ours):
            print(f"{table:18} {place:4}  {name}")
    for problem in problems:
        print(f"onnxruntime_slots: {problem}")
    print(f"{len(our_slots(ours))} functions and {len(our_records(ours))} records against version {version}: "
          f"{len(problems) or 'no'} differences")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())

# What omniidl has understood, one line for each thing: `omniidl -p interop/omniidl -b listing FILE`.
#
# crates/chronorb-idl/tests/omniidl lists our model in the same words and compares. Lines are
#
#     KIND SCOPED::NAME [IDL:repository/id:1.0] …
#
# Members are lines of their own and have their position. Floating point numbers are given as
# bits, texts as numbers of characters.
#
# SPDX-License-Identifier: MIT OR Apache-2.0

import struct

from omniidl import idlast, idltype

BASIC = {
    idltype.tk_void: "void",
    idltype.tk_short: "short",
    idltype.tk_long: "long",
    idltype.tk_ushort: "unsigned short",
    idltype.tk_ulong: "unsigned long",
    idltype.tk_longlong: "long long",
    idltype.tk_ulonglong: "unsigned long long",
    idltype.tk_float: "float",
    idltype.tk_double: "double",
    idltype.tk_longdouble: "long double",
    idltype.tk_boolean: "boolean",
    idltype.tk_char: "char",
    idltype.tk_wchar: "wchar",
    idltype.tk_octet: "octet",
    idltype.tk_any: "any",
    idltype.tk_TypeCode: "TypeCode",
    idltype.tk_Principal: "Principal",
}

BUILT_IN = {
    "CORBA::Object": "Object",
    "CORBA::ValueBase": "ValueBase",
    "CORBA::AbstractBase": "AbstractBase",
}


def run(tree, args):
    for line in definitions(tree.declarations()):
        print(line)


def definitions(declarations):
    for declaration in declarations:
        kind = type(declaration)
        if declaration.builtIn():
            continue
        if kind is idlast.Module:
            yield f"module {name_of(declaration)}"
            yield from definitions(declaration.definitions())
        elif kind is idlast.Const:
            yield f"const {head(declaration)} {type_of(resolved(declaration.constType()))}" \
                f" {value_of(declaration.constKind(), declaration.value())}"
        elif kind is idlast.Typedef:
            yield from constructed(declaration)
            for declarator in declaration.declarators():
                ty = type_of(declaration.aliasType(), declarator)
                yield f"typedef {head(declarator)} {ty}"
        elif kind in (idlast.Struct, idlast.Exception):
            word = "struct" if kind is idlast.Struct else "exception"
            yield f"{word} {head(declaration)}"
            yield from members(declaration, declaration.members())
        elif kind is idlast.Union:
            yield from constructed(declaration)
            yield f"union {head(declaration)} {type_of(declaration.switchType())}"
            for position, case in enumerate(declaration.cases()):
                yield from constructed(case)
                labels = sorted(label(declaration, each) for each in case.labels())
                ty = type_of(case.caseType(), case.declarator())
                yield f"case {name_of(declaration)} {position} {' '.join(labels)}: " \
                    f"{ty} {case.declarator().identifier()}"
        elif kind is idlast.Enum:
            enumerators = " ".join(each.identifier() for each in declaration.enumerators())
            yield f"enum {head(declaration)} {enumerators}"
        elif kind is idlast.Native:
            yield f"native {head(declaration)}"
        elif kind is idlast.Interface:
            marks = "local " * declaration.local() + "abstract " * declaration.abstract()
            yield f"{marks}interface {head(declaration)}{names(' : ', declaration.inherits())}"
            yield from contents(declaration)
        elif kind is idlast.ValueBox:
            yield from constructed(declaration)
            yield f"box {head(declaration)} {type_of(declaration.boxedType())}"
        elif kind in (idlast.Value, idlast.ValueAbs):
            marks = "abstract " if kind is idlast.ValueAbs else "custom " * declaration.custom()
            truncatable = " truncatable" * bool(kind is idlast.Value and declaration.truncatable())
            yield f"{marks}value {head(declaration)}{truncatable}" \
                f"{names(' : ', declaration.inherits())}{names(' supports ', declaration.supports())}"
            yield from contents(declaration)
        elif kind in (idlast.Forward, idlast.ValueForward) and not declaration.fullDecl():
            yield f"forward {head(declaration)}"


def contents(scope):
    yield from definitions(scope.declarations())
    callables = [each for each in scope.contents() if type(each) is idlast.Operation]
    for position, each in enumerate(callables):
        yield operation(scope, position, each)
    position = 0
    for each in scope.contents():
        if type(each) is idlast.Attribute:
            for declarator in each.declarators():
                readonly = "readonly " * bool(each.readonly())
                yield f"{readonly}attribute {name_of(scope)} {position} " \
                    f"{type_of(each.attrType())} {declarator.identifier()}"
                position += 1
    position = 0
    for each in scope.contents():
        if type(each) is idlast.StateMember:
            yield from constructed(each)
            access = "private" if each.memberAccess() else "public"
            for declarator in each.declarators():
                ty = type_of(each.memberType(), declarator)
                yield f"state {name_of(scope)} {position} {access} {ty} {declarator.identifier()}"
                position += 1
    factories = [each for each in scope.contents() if type(each) is idlast.Factory]
    for position, each in enumerate(factories):
        raises = names(" raises ", sorted_names(each.raises()))
        yield f"factory {name_of(scope)} {position} {each.identifier()}({parameters(each)}){raises}"


def operation(scope, position, each):
    oneway = "oneway " * bool(each.oneway())
    raises = names(" raises ", sorted_names(each.raises()))
    context = "".join(f" context {one}" for one in each.contexts())
    return f"{oneway}operation {name_of(scope)} {position} {type_of(each.returnType())} " \
        f"{each.identifier()}({parameters(each)}){raises}{context}"


def parameters(each):
    return ", ".join(
        f"{one.dirtext()} {type_of(one.paramType())} {one.identifier()}" for one in each.parameters()
    )


# omniidl sorts the exceptions of a raises clause.
def sorted_names(declarations):
    return sorted(declarations, key=name_of)


def members(scope, groups):
    position = 0
    for group in groups:
        yield from constructed(group)
        for declarator in group.declarators():
            ty = type_of(group.memberType(), declarator)
            yield f"member {name_of(scope)} {position} {ty} {declarator.identifier()}"
            position += 1


# The type that is defined where it is used.
def constructed(declaration):
    if not declaration.constrType():
        return
    if type(declaration) is idlast.Union:
        ty = declaration.switchType()
    elif type(declaration) is idlast.UnionCase:
        ty = declaration.caseType()
    elif type(declaration) is idlast.Typedef:
        ty = declaration.aliasType()
    elif type(declaration) is idlast.ValueBox:
        ty = declaration.boxedType()
    else:
        ty = declaration.memberType()
    yield from definitions([ty.decl()])


def label(union, each):
    if each.default():
        return "default"
    return value_of(each.labelKind(), each.value())


def name_of(declaration):
    return "::".join(declaration.scopedName())


def head(declaration):
    return f"{name_of(declaration)} {declaration.repoId()}"


def names(before, declarations):
    if not declarations:
        return ""
    return before + ", ".join(name_of(each) for each in declarations)


def resolved(ty):
    while ty.kind() == idltype.tk_alias and not ty.decl().sizes():
        ty = ty.decl().alias().aliasType()
    return ty


def type_of(ty, declarator=None):
    sizes = "".join(f"[{size}]" for size in (declarator.sizes() if declarator else []))
    kind = ty.kind()
    if kind in BASIC:
        return BASIC[kind] + sizes
    if kind in (idltype.tk_string, idltype.tk_wstring):
        word = "string" if kind == idltype.tk_string else "wstring"
        return word + (f"<{ty.bound()}>" if ty.bound() else "") + sizes
    if kind == idltype.tk_sequence:
        bound = f", {ty.bound()}" if ty.bound() else ""
        return f"sequence<{type_of(ty.seqType())}{bound}>{sizes}"
    if kind == idltype.tk_fixed:
        # The type of a constant has no digits of its own.
        return (f"fixed<{ty.digits()}, {ty.scale()}>" if ty.digits() > 0 else "fixed") + sizes
    name = "::".join(ty.scopedName())
    return BUILT_IN.get(name, name) + sizes


def value_of(kind, value):
    if kind == idltype.tk_boolean:
        return "TRUE" if value else "FALSE"
    if kind == idltype.tk_float:
        return struct.pack(">f", value).hex()
    if kind in (idltype.tk_double, idltype.tk_longdouble):
        return struct.pack(">d", value).hex()
    if kind == idltype.tk_enum:
        return name_of(value)
    if kind == idltype.tk_char:
        return str(ord(value) & 0xFF)
    if kind == idltype.tk_string:
        return ".".join(str(byte) for byte in value.encode("utf-8"))
    if kind == idltype.tk_wstring:
        return ".".join(str(unit) for unit in value)
    return str(value)

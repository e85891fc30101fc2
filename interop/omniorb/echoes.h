// Calls of echoes, for each way in which C++ passes a type: `v` goes in, `w` goes in and out.
//
// SPDX-License-Identifier: MIT OR Apache-2.0

#ifndef CHRONORB_INTEROP_ECHOES_H
#define CHRONORB_INTEROP_ECHOES_H

#include "report.h"
#include "values.h"

#include <functional>

// The operation as a function of its three arguments.
#define OPERATION(target, op) [&](auto&&... arguments) { return target->op(arguments...); }

// Numbers, enums and structs of fixed size.
template <class T, class Operation>
void echo_value(Report& report, const std::string& name, const T& v, const T& w,
                Operation operation) {
    report.echo(name, [&] {
        T io = w;
        T o{};
        const T result = operation(v, io, o);
        return Echoed{equal(result, v), equal(o, w), equal(io, v)};
    });
}

// Structs of variable size and sequences.
template <class T, class Operation>
void echo_variable(Report& report, const std::string& name, const T& v, const T& w,
                   Operation operation) {
    report.echo(name, [&] {
        T io(w);
        typename T::_var_type o;
        typename T::_var_type result = operation(v, io, o.out());
        return Echoed{equal(result.in(), v), equal(o.in(), w), equal(io, v)};
    });
}

template <class Operation>
void echo_string(Report& report, const std::string& name, const std::string& v,
                 const std::string& w, Operation operation) {
    report.echo(name, [&] {
        CORBA::String_var io = CORBA::string_dup(w.c_str());
        CORBA::String_var o;
        CORBA::String_var result = operation(v.c_str(), io.inout(), o.out());
        return Echoed{v == result.in(), w == o.in(), v == io.in()};
    });
}

template <class Operation>
void echo_wide_string(Report& report, const std::string& name, const std::wstring& v,
                      const std::wstring& w, Operation operation) {
    report.echo(name, [&] {
        CORBA::WString_var io = CORBA::wstring_dup(w.c_str());
        CORBA::WString_var o;
        CORBA::WString_var result = operation(v.c_str(), io.inout(), o.out());
        return Echoed{v == result.in(), w == o.in(), v == io.in()};
    });
}

// Arrays whose elements have a fixed size; Var is the `_var` of the array's type.
template <class Var, class T, class Operation>
void echo_array(Report& report, const std::string& name, const T& v, const T& w,
                Operation operation) {
    report.echo(name, [&] {
        T io;
        assign(io, w);
        T o;
        Var result = operation(v, io, o);
        return Echoed{equal(reinterpret_cast<const T&>(*result.in()), v), equal(o, w),
                      equal(io, v)};
    });
}

// Arrays whose elements have a variable size.
template <class Var, class T, class Operation>
void echo_variable_array(Report& report, const std::string& name, const T& v, const T& w,
                         Operation operation) {
    report.echo(name, [&] {
        T io;
        assign(io, w);
        Var o;
        Var result = operation(v, io, o.out());
        return Echoed{equal(reinterpret_cast<const T&>(*result.in()), v),
                      equal(reinterpret_cast<const T&>(*o.in()), w), equal(io, v)};
    });
}

#endif

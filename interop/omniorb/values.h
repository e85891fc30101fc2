// Values to send, and whether two values are the same.
//
// SPDX-License-Identifier: MIT OR Apache-2.0

#ifndef CHRONORB_INTEROP_VALUES_H
#define CHRONORB_INTEROP_VALUES_H

#include <interop.hh>

#include <cstddef>
#include <cstring>
#include <initializer_list>
#include <string>
#include <type_traits>

// Numbers are the same when their bits are, so that NaN is itself and 0 is not -0.
template <class T>
std::enable_if_t<std::is_arithmetic_v<T> || std::is_enum_v<T>, bool> equal(const T& a, const T& b) {
    return std::memcmp(&a, &b, sizeof a) == 0;
}

// Of the storage of a long double some octets mean nothing.
inline bool equal(const CORBA::LongDouble& a, const CORBA::LongDouble& b) {
    return a == b;
}

inline bool equal(const char* a, const char* b) {
    return std::strcmp(a, b) == 0;
}

inline bool equal(const CORBA::String_member& a, const CORBA::String_member& b) {
    return equal(static_cast<const char*>(a), static_cast<const char*>(b));
}

inline bool equal(const CORBA::WChar* a, const CORBA::WChar* b) {
    return std::wcscmp(a, b) == 0;
}

// Structs and sequences are the same when their encodings are.
template <class T>
std::enable_if_t<std::is_class_v<T>, bool> equal(const T& a, const T& b) {
    cdrMemoryStream left(0, true);
    cdrMemoryStream right(0, true);
    a >>= left;
    b >>= right;
    return left.bufSize() == right.bufSize() &&
           std::memcmp(left.bufPtr(), right.bufPtr(), left.bufSize()) == 0;
}

template <class T, std::size_t N>
bool equal(const T (&a)[N], const T (&b)[N]) {
    for (std::size_t i = 0; i < N; ++i)
        if (!equal(a[i], b[i]))
            return false;
    return true;
}

template <class T>
void assign(T& to, const T& from) {
    to = from;
}

template <class T, std::size_t N>
void assign(T (&to)[N], const T (&from)[N]) {
    for (std::size_t i = 0; i < N; ++i)
        assign(to[i], from[i]);
}

// The sequence with these elements.
template <class Sequence, class T>
Sequence sequence(std::initializer_list<T> elements) {
    Sequence s;
    s.length(static_cast<CORBA::ULong>(elements.size()));
    CORBA::ULong i = 0;
    for (const T& element : elements)
        s[i++] = element;
    return s;
}

// The sequence of `count` elements where element `i` is `element(i)`.
template <class Sequence, class Element>
Sequence sequence_of(CORBA::ULong count, Element element) {
    Sequence s(count);
    s.length(count);
    for (CORBA::ULong i = 0; i < count; ++i)
        s[i] = element(i);
    return s;
}

Interop::Shapes::Point point(double x, double y);
Interop::Shapes::Segment segment(double x, Interop::Color ink);
Interop::Entry entry(const char* key, CORBA::Long value);
Interop::Keywords keywords(CORBA::Long type, const char* text, CORBA::Boolean context);

// A document in which every member depends on `n`; the lengths of its parts go up to `n` % 5.
Interop::Document document(CORBA::ULong n);

#endif

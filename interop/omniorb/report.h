// Counts checks and prints one line for each.
//
// SPDX-License-Identifier: MIT OR Apache-2.0

#ifndef CHRONORB_INTEROP_REPORT_H
#define CHRONORB_INTEROP_REPORT_H

#include <omniORB4/CORBA.h>

#include <cstddef>
#include <string>

// What came back from one call of an echo.
struct Echoed {
    bool result;
    bool out;
    bool inout;
};

class Report {
public:
    // Heads the checks that follow.
    void group(const std::string& name);

    void ok(bool passed, const std::string& name, const std::string& detail = "");
    void skip(const std::string& name, const std::string& reason);

    // Prints the closing line; true if nothing failed.
    bool finish() const;

    // `body` returns whether the check passed; an exception is a failure.
    template <class Body>
    void check(const std::string& name, Body body);

    // As check, with a line for each of the three ways back.
    template <class Body>
    void echo(const std::string& name, Body body);

    // `body` is expected to throw an E for which `matches(e)` holds.
    template <class E, class Body, class Matches>
    void raises(const std::string& name, Body body, Matches matches);

    template <class E, class Body>
    void raises(const std::string& name, Body body) {
        raises<E>(name, body, [](const E&) { return true; });
    }

private:
    std::size_t passed_ = 0;
    std::size_t failed_ = 0;
};

// The exception being handled, for people.
std::string describe_current_exception();

template <class Body>
void Report::check(const std::string& name, Body body) {
    try {
        ok(body(), name);
    } catch (...) {
        ok(false, name, describe_current_exception());
    }
}

template <class Body>
void Report::echo(const std::string& name, Body body) {
    Echoed echoed{false, false, false};
    std::string detail;
    try {
        echoed = body();
    } catch (...) {
        detail = describe_current_exception();
    }
    ok(echoed.result, name + " result", detail);
    ok(echoed.out, name + " out", detail);
    ok(echoed.inout, name + " inout", detail);
}

template <class E, class Body, class Matches>
void Report::raises(const std::string& name, Body body, Matches matches) {
    try {
        body();
    } catch (const E& e) {
        ok(matches(e), name, describe_current_exception());
        return;
    } catch (...) {
        ok(false, name, describe_current_exception());
        return;
    }
    ok(false, name, "nothing was raised");
}

#endif

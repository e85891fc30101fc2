// Messages that are sent in fragments, and many calls at a time.
//
// SPDX-License-Identifier: MIT OR Apache-2.0

#include "checks.h"
#include "echoes.h"

#include <atomic>
#include <string>
#include <thread>
#include <vector>

namespace {

const CORBA::ULong HUNDRED_THOUSAND = 100000;

bool is_filling(const Interop::Octets& octets, CORBA::ULong count) {
    if (octets.length() != count)
        return false;
    for (CORBA::ULong i = 0; i < count; ++i)
        if (octets[i] != i % 251)
            return false;
    return true;
}

Interop::Octets filling(CORBA::ULong count) {
    return sequence_of<Interop::Octets>(
        count, [](CORBA::ULong i) { return static_cast<CORBA::Octet>(i % 251); });
}

CORBA::ULong sum_of_filling(CORBA::ULong count) {
    const CORBA::ULong rest = count % 251;
    return count / 251 * (250 * 251 / 2) + (rest > 0 ? rest * (rest - 1) / 2 : 0);
}

// omniORB writes into buffers of 8 KiB: these lengths put the cut at every place of the arguments.
void check_cuts(Context& context) {
    Interop::Echo_ptr echo = context.echo;
    context.report.check("fill around the size of a buffer", [&] {
        for (CORBA::ULong count = 8000; count < 8300; ++count) {
            Interop::Octets_var octets = echo->fill(count);
            if (!is_filling(octets, count))
                return false;
        }
        return true;
    });
    context.report.check("sum around the size of a buffer", [&] {
        for (CORBA::ULong count = 8000; count < 8300; ++count)
            if (echo->sum(filling(count)) != sum_of_filling(count))
                return false;
        return true;
    });
    context.report.check("echo_entry around the size of a buffer", [&] {
        for (CORBA::ULong length = 8100; length < 8250; ++length) {
            const std::string key(length, 'k');
            Interop::Entry io = entry("short", 1);
            Interop::Entry_var o;
            Interop::Entry_var result = echo->echo_entry(entry(key.c_str(), 2), io, o.out());
            if (key != result->key.in() || result->value != 2 || o->value != 1)
                return false;
        }
        return true;
    });
    context.report.check("echo_document around the size of a buffer", [&] {
        for (CORBA::ULong length = 7900; length < 8250; ++length) {
            Interop::Document v = document(4);
            v.author = "author";
            v.first.key = std::string(length, 'k').c_str();
            Interop::Document io = document(3);
            Interop::Document_var o;
            Interop::Document_var result = echo->echo_document(v, io, o.out());
            if (!equal(result.in(), v) || !equal(o.in(), document(3)) || !equal(io, v))
                return false;
        }
        return true;
    });
}

} // namespace

void check_large(Context& context) {
    using namespace Interop;
    Report& report = context.report;
    Echo_ptr echo = context.echo;

    for (CORBA::ULong count : {0U, 1U, 1000U, 10000U, HUNDRED_THOUSAND, 1000000U}) {
        report.check("fill " + std::to_string(count), [&] {
            Octets_var octets = echo->fill(count);
            return is_filling(octets, count);
        });
        report.check("sum " + std::to_string(count),
                     [&] { return echo->sum(filling(count)) == sum_of_filling(count); });
    }
    check_cuts(context);

    echo_variable(report, "echo_octets 100000", filling(HUNDRED_THOUSAND), filling(3),
                  OPERATION(echo, echo_octets));
    const auto number = [](CORBA::ULong i) { return static_cast<CORBA::Long>(i * 2654435761U); };
    echo_variable(report, "echo_longs 100000", sequence_of<Longs>(HUNDRED_THOUSAND, number),
                  sequence_of<Longs>(9999, number), OPERATION(echo, echo_longs));
    const auto real = [](CORBA::ULong i) { return i / 7.0; };
    echo_variable(report, "echo_doubles 100000", sequence_of<Doubles>(HUNDRED_THOUSAND, real),
                  sequence_of<Doubles>(5000, real), OPERATION(echo, echo_doubles));
    const auto word = [](CORBA::ULong i) {
        return CORBA::string_dup(std::string(i % 11, static_cast<char>('a' + i % 26)).c_str());
    };
    echo_variable(report, "echo_words 20000", sequence_of<Words>(20000, word),
                  sequence_of<Words>(3000, word), OPERATION(echo, echo_words));
    echo_variable(report, "echo_documents 500", sequence_of<Documents>(500, document),
                  sequence_of<Documents>(10, document), OPERATION(echo, echo_documents));
    // With the NUL at its end the string is a multiple of 8 octets long. omniORB 4.2 cannot read its own
    // messages of GIOP 1.1 where an argument follows a long string of another length.
    const std::string text(HUNDRED_THOUSAND - 1, 't');
    echo_string(report, "echo_string 99999", text, "short", OPERATION(echo, echo_string));

    report.check("call_octets 100000", [&] {
        Relations_var relations = context.hub->get_relations();
        return relations->call_octets(echo, filling(HUNDRED_THOUSAND)) == HUNDRED_THOUSAND;
    });
    // The call behind it must wait for all fragments of the oneway request, for which no reply comes.
    report.check("note_longs 50000, and a call behind it", [&] {
        Notes_var notes = context.hub->get_notes();
        notes->note_longs("fifty thousand", sequence_of<Longs>(50000, number));
        CORBA::Octet io = 1;
        CORBA::Octet o = 0;
        return echo->echo_octet(2, io, o) == 2 && o == 1;
    });
}

void check_threads(Context& context) {
    const int threads = 4;
    const int calls = 100;
    Interop::Echo_ptr echo = context.echo;
    std::atomic<int> right{0};
    std::vector<std::thread> running;
    for (int thread = 0; thread < threads; ++thread) {
        running.emplace_back([&, thread] {
            try {
                for (int call = 0; call < calls; ++call) {
                    CORBA::Long io = thread;
                    CORBA::Long o = -1;
                    const CORBA::Long v = thread * calls + call;
                    const auto count = static_cast<CORBA::ULong>(v) * 50;
                    const bool echoed = echo->echo_long(v, io, o) == v && io == v && o == thread;
                    Interop::Octets_var octets = echo->fill(count);
                    right += echoed && is_filling(octets, count);
                }
            } catch (const CORBA::Exception&) {
                // The count of right answers tells.
            }
        });
    }
    for (std::thread& thread : running)
        thread.join();
    context.report.ok(right == threads * calls, "calls of four threads at a time",
                      std::to_string(right) + " of " + std::to_string(threads * calls) + " right");
}

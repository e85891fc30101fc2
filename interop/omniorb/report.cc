// Counts checks and prints one line for each.
//
// SPDX-License-Identifier: MIT OR Apache-2.0

#include "report.h"

#include <exception>
#include <iostream>
#include <sstream>

void Report::group(const std::string& name) {
    std::cout << "# " << name << std::endl;
}

void Report::ok(bool passed, const std::string& name, const std::string& detail) {
    ++(passed ? passed_ : failed_);
    std::cout << (passed ? "ok " : "not ok ") << passed_ + failed_ << " - " << name;
    if (!passed && !detail.empty())
        std::cout << " (" << detail << ')';
    std::cout << std::endl;
}

void Report::skip(const std::string& name, const std::string& reason) {
    ++passed_;
    std::cout << "ok " << passed_ + failed_ << " - " << name << " # SKIP " << reason << std::endl;
}

bool Report::finish() const {
    std::cout << passed_ << " passed, " << failed_ << " failed" << std::endl;
    return failed_ == 0;
}

std::string describe_current_exception() {
    try {
        throw;
    } catch (const CORBA::SystemException& e) {
        static const char* const completed[] = {"yes", "no", "maybe"};
        std::ostringstream text;
        text << e._name() << ", minor code 0x" << std::hex << e.minor() << ", completed "
             << completed[e.completed() % 3];
        return text.str();
    } catch (const CORBA::Exception& e) {
        return e._rep_id();
    } catch (const std::exception& e) {
        return e.what();
    }
}

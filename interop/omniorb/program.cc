// What the programs have in common.
//
// SPDX-License-Identifier: MIT OR Apache-2.0

#include "program.h"

#include <omniORB4/BiDirPolicy.h>

#include <csignal>
#include <cstdio>
#include <fstream>
#include <stdexcept>
#include <thread>

namespace {

sigset_t termination() {
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGTERM);
    sigaddset(&signals, SIGINT);
    return signals;
}

} // namespace

void write_file(const std::string& path, const char* text) {
    const std::string partial = path + ".part";
    std::ofstream file(partial);
    file << text << '\n';
    file.close();
    if (!file || std::rename(partial.c_str(), path.c_str()) != 0)
        throw std::runtime_error("cannot write " + path);
}

std::string reference_text(const std::string& file_or_url) {
    for (const char* scheme : {"IOR:", "corbaloc:", "corbaname:"})
        if (file_or_url.rfind(scheme, 0) == 0)
            return file_or_url;
    std::ifstream file(file_or_url);
    std::string text;
    if (!std::getline(file, text))
        throw std::runtime_error("cannot read " + file_or_url);
    return text;
}

CORBA::Policy_ptr both_ways(CORBA::ORB_ptr orb) {
    CORBA::Any value;
    value <<= BiDirPolicy::BOTH;
    return orb->create_policy(BiDirPolicy::BIDIRECTIONAL_POLICY_TYPE, value);
}

void block_signals() {
    const sigset_t signals = termination();
    pthread_sigmask(SIG_BLOCK, &signals, nullptr);
}

void shut_down_on_signals(CORBA::ORB_ptr orb) {
    CORBA::ORB_var own = CORBA::ORB::_duplicate(orb);
    std::thread([own]() mutable {
        const sigset_t signals = termination();
        int signal = 0;
        sigwait(&signals, &signal);
        own->shutdown(false);
    }).detach();
}

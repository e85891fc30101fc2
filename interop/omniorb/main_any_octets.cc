// omni_any_octets      decodes anys of any octets by omniORB, and encodes them again
//
// A question on standard input is a word with the length of the octets, an octet that is 1 where
// they are little-endian, and the octets. The answer on standard output is an octet that is 1 where
// they are an any, a word with the length of what follows, and the any as omniORB writes it, or the
// name of the exception. Words are little-endian. Text is UTF-8 and UTF-16.
//
// SPDX-License-Identifier: MIT OR Apache-2.0

#include <omniORB4/CORBA.h>
#include <omniORB4/codeSets.h>

#include <cstdint>
#include <cstdio>
#include <iostream>
#include <new>
#include <string>
#include <vector>

#include <sys/resource.h>
#include <unistd.h>

namespace {

const GIOP::Version VERSION = {1, 2};

// Longer than a good question takes; then the program ends.
const unsigned PATIENCE_SECONDS = 2;

const rlim_t MOST_MEMORY = rlim_t(1) << 30;

bool read_all(void* place, size_t length) {
    return std::fread(place, 1, length, stdin) == length;
}

void set_up(cdrMemoryStream& stream, bool little) {
    stream.setByteSwapFlag(little);
    stream.TCS_C(omni::omniCodeSet::getTCS_C(omni::omniCodeSet::ID_UTF_8, VERSION));
    stream.TCS_W(omni::omniCodeSet::getTCS_W(omni::omniCodeSet::ID_UTF_16, VERSION));
}

std::string again(const std::vector<unsigned char>& octets, bool little) {
    cdrMemoryStream in;
    in.put_octet_array(octets.data(), int(octets.size()));
    in.rewindInputPtr();
    set_up(in, little);
    CORBA::Any any;
    any <<= in;
    cdrMemoryStream out;
    set_up(out, little);
    any >>= out;
    return std::string(static_cast<const char*>(out.bufPtr()), out.bufSize());
}

void answer(bool is_any, const std::string& text) {
    std::putchar(is_any);
    const uint32_t length = uint32_t(text.size());
    for (int shift = 0; shift < 32; shift += 8)
        std::putchar(int(length >> shift & 0xff));
    std::fwrite(text.data(), 1, text.size(), stdout);
    std::fflush(stdout);
}

} // namespace

int main(int argc, char** argv) {
    const rlimit memory = {MOST_MEMORY, MOST_MEMORY};
    setrlimit(RLIMIT_AS, &memory);
    try {
        CORBA::ORB_var orb = CORBA::ORB_init(argc, argv, "omniORB4");
        unsigned char head[5];
        while (read_all(head, sizeof head)) {
            const uint32_t length = head[0] | head[1] << 8 | head[2] << 16 | uint32_t(head[3]) << 24;
            std::vector<unsigned char> octets(length);
            if (!read_all(octets.data(), length))
                break;
            alarm(PATIENCE_SECONDS);
            try {
                answer(true, again(octets, head[4] == 1));
            } catch (const CORBA::SystemException& e) {
                answer(false, e._name());
            } catch (const CORBA::Exception& e) {
                answer(false, e._name());
            } catch (const std::bad_alloc&) {
                answer(false, "bad_alloc");
            }
            alarm(0);
        }
        return 0;
    } catch (const CORBA::Exception& e) {
        std::cerr << "omni_any_octets: " << e._name() << '\n';
    }
    return 2;
}

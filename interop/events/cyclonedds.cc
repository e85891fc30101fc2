// Cyclone DDS over UDP on the loopback: a reliable topic, and readers with listeners. README.md
// describes the arguments and the lines.
#include <dds/dds.h>

#include <cstring>

#include "event.h"
#include "peer.hpp"

static dds_entity_t check(dds_entity_t result) {
  if (result < 0) peer::fail(dds_strretcode(-result));
  return result;
}

static dds_qos_t* reliable() {
  dds_qos_t* qos = dds_create_qos();
  dds_qset_reliability(qos, DDS_RELIABILITY_RELIABLE, DDS_SECS(10));
  dds_qset_history(qos, DDS_HISTORY_KEEP_LAST, 256);
  return qos;
}

static dds_entity_t topic_of(dds_entity_t participant, const char* name) {
  return check(dds_create_topic(participant, &Peer_Event_desc, name, nullptr, nullptr));
}

static void supply(unsigned warm_up, unsigned events, uint64_t period) {
  const std::string name = "chronorb_" + std::to_string(getpid());
  const dds_entity_t participant = check(dds_create_participant(0, nullptr, nullptr));
  const dds_entity_t topic = topic_of(participant, name.c_str());
  const dds_entity_t writer = check(dds_create_writer(participant, topic, reliable(), nullptr));
  peer::tell("\"" + name + "\"");
  peer::hear();
  Peer_Event event = {};
  peer::supply(warm_up, events, period, [&](uint64_t stamp) {
    event.stamp = stamp;
    check(dds_write(writer, &event));
  });
  peer::tell("{}");
}

static void take(dds_entity_t reader, void* latencies) {
  Peer_Event event;
  void* samples[1] = {&event};
  dds_sample_info_t info;
  while (dds_take(reader, samples, &info, 1, 1) > 0) {
    if (info.valid_data) static_cast<peer::Latencies*>(latencies)->take(event.stamp);
  }
}

static void consume(const char* name, unsigned consumers, unsigned events) {
  peer::Latencies latencies;
  const dds_entity_t participant = check(dds_create_participant(0, nullptr, nullptr));
  const dds_entity_t topic = topic_of(participant, name);
  std::vector<dds_entity_t> readers;
  for (unsigned number = 0; number < consumers; number++) {
    dds_listener_t* listener = dds_create_listener(&latencies);
    dds_lset_data_available(listener, take);
    readers.push_back(check(dds_create_reader(participant, topic, reliable(), listener)));
  }
  for (dds_entity_t reader : readers) {
    dds_subscription_matched_status_t status = {};
    for (int attempt = 0; status.current_count == 0; attempt++) {
      if (attempt == 1000) peer::fail("a reader finds no writer");
      usleep(10000);
      check(dds_get_subscription_matched_status(reader, &status));
    }
  }
  peer::tell("{}");
  peer::hear();
  latencies.conclude(size_t(consumers) * events);
  peer::hear();
}

int main(int argc, char** argv) {
  setenv("CYCLONEDDS_URI",
         "<General><Interfaces><NetworkInterface name=\"lo\"/></Interfaces>"
         "<AllowMulticast>false</AllowMulticast></General>"
         "<Discovery><ParticipantIndex>auto</ParticipantIndex>"
         "<MaxAutoParticipantIndex>64</MaxAutoParticipantIndex>"
         "<Peers><Peer address=\"127.0.0.1\"/></Peers></Discovery>",
         0);
  const std::string role = argc > 1 ? argv[1] : "";
  if (role == "supply" && argc == 6) {
    supply(peer::number(argv[3]), peer::number(argv[4]), peer::number(argv[5]));
  } else if (role == "consume" && argc == 5) {
    consume(argv[2], peer::number(argv[3]), peer::number(argv[4]));
  } else {
    peer::fail("cyclonedds supply \"\" WARM_UP EVENTS PERIOD_NS | "
               "consume ADDRESS CONSUMERS EVENTS");
  }
  peer::end();
}

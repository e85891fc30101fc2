// The event channel of omniEvents, with a supplier and consumers that use omniORB. README.md
// describes the arguments and the lines.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <omniEvents/CosEventChannelAdmin.hh>
#include <omniEvents/EventChannelAdmin.hh>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>

#include <cstring>
#include <memory>

#include "peer.hpp"

namespace admin = CosEventChannelAdmin;

static CORBA::ORB_var orb;

static unsigned free_port() {
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  if (bind(fd, reinterpret_cast<sockaddr*>(&address), size) != 0 ||
      getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size) != 0) {
    peer::fail("there is no free port");
  }
  close(fd);
  return ntohs(address.sin_port);
}

// Starts the server, and makes a channel with a cycle of 1 ms: of 1 ns, 10 µs, 100 µs, 1 ms and the
// default of 100 ms it has the shortest latencies.
static void channel() {
  const std::string port = std::to_string(free_port());
  char folder[] = "/tmp/chronorb-omnievents-XXXXXX";
  if (mkdtemp(folder) == nullptr) peer::fail("there is no folder for omniEvents");
  const std::string trace = std::string(folder) + "/trace";
  if (fork() == 0) {
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    execl("/usr/sbin/omniEvents", "omniEvents", "-f", "-p", port.c_str(), "-l", folder, "-t",
          trace.c_str(), nullptr);
    _exit(127);
  }
  const std::string address = "corbaloc::127.0.0.1:" + port + "/omniEvents";
  for (int attempt = 0;; attempt++) {
    try {
      CORBA::Object_var object = orb->string_to_object(address.c_str());
      auto factory = EventChannelAdmin::EventChannelFactory::_narrow(object);
      CosLifeCycle::Key key;
      key.length(1);
      key[0].id = CORBA::string_dup("EventChannel");
      key[0].kind = CORBA::string_dup("object interface");
      CosLifeCycle::Criteria criteria;
      criteria.length(1);
      criteria[0].name = CORBA::string_dup("CyclePeriod_ns");
      criteria[0].value <<= CORBA::ULong(1000000);
      CORBA::Object_var made = factory->create_object(key, criteria);
      CORBA::String_var reference = orb->object_to_string(made);
      peer::tell("\"" + std::string(reference) + "\"");
      return;
    } catch (const CORBA::Exception& error) {
      if (attempt == 100) peer::fail(std::string("omniEvents: ") + error._name());
      usleep(100000);
    }
  }
}

static admin::EventChannel_ptr channel_of(const char* address) {
  CORBA::Object_var object = orb->string_to_object(address);
  return admin::EventChannel::_narrow(object);
}

static void supply(const char* address, unsigned warm_up, unsigned events, uint64_t period) {
  admin::EventChannel_var channel = channel_of(address);
  admin::SupplierAdmin_var suppliers = channel->for_suppliers();
  admin::ProxyPushConsumer_var proxy = suppliers->obtain_push_consumer();
  proxy->connect_push_supplier(CosEventComm::PushSupplier::_nil());
  peer::tell("\"" + std::string(address) + "\"");
  peer::hear();
  CORBA::OctetSeq payload;
  payload.length(peer::payload);
  memset(payload.get_buffer(), 7, peer::payload);
  peer::supply(warm_up, events, period, [&](uint64_t stamp) {
    memcpy(payload.get_buffer(), &stamp, sizeof stamp);
    CORBA::Any value;
    value <<= payload;
    proxy->push(value);
  });
  peer::tell("{}");
  peer::hear();
  proxy->disconnect_push_consumer();
}

class Consumer : public POA_CosEventComm::PushConsumer {
 public:
  explicit Consumer(peer::Latencies& latencies) : latencies_(latencies) {}

  void push(const CORBA::Any& value) override {
    const CORBA::OctetSeq* payload;
    if (!(value >>= payload) || payload->length() != peer::payload) peer::fail("another event");
    uint64_t stamp;
    memcpy(&stamp, payload->get_buffer(), sizeof stamp);
    latencies_.take(stamp);
  }

  void disconnect_push_consumer() override {}

 private:
  peer::Latencies& latencies_;
};

static void consume(const char* address, unsigned consumers, unsigned events) {
  CORBA::Object_var object = orb->resolve_initial_references("RootPOA");
  PortableServer::POA_var poa = PortableServer::POA::_narrow(object);
  PortableServer::POAManager_var(poa->the_POAManager())->activate();
  peer::Latencies latencies;
  admin::EventChannel_var channel = channel_of(address);
  admin::ConsumerAdmin_var admins = channel->for_consumers();
  std::vector<admin::ProxyPushSupplier_var> proxies;
  std::vector<std::unique_ptr<Consumer>> servants;
  for (unsigned number = 0; number < consumers; number++) {
    servants.emplace_back(new Consumer(latencies));
    PortableServer::ObjectId_var id = poa->activate_object(servants.back().get());
    CosEventComm::PushConsumer_var consumer = servants.back()->_this();
    admin::ProxyPushSupplier_var proxy = admins->obtain_push_supplier();
    proxy->connect_push_consumer(consumer);
    proxies.push_back(proxy);
  }
  peer::tell("{}");
  peer::hear();
  latencies.conclude(size_t(consumers) * events);
  for (auto& proxy : proxies) proxy->disconnect_push_supplier();
  peer::hear();
}

int main(int argc, char** argv) {
  const char* options[][2] = {{"endPoint", "giop:tcp:127.0.0.1:"}, {0, 0}};
  try {
    orb = CORBA::ORB_init(argc, argv, "omniORB4", options);
    const std::string role = argc > 1 ? argv[1] : "";
    if (role == "channel") {
      channel();
    } else if (role == "supply" && argc == 6) {
      supply(argv[2], peer::number(argv[3]), peer::number(argv[4]), peer::number(argv[5]));
    } else if (role == "consume" && argc == 5) {
      consume(argv[2], peer::number(argv[3]), peer::number(argv[4]));
    } else {
      peer::fail("omnievents channel | supply ADDRESS WARM_UP EVENTS PERIOD_NS | "
                 "consume ADDRESS CONSUMERS EVENTS");
    }
    peer::end();
  } catch (const CORBA::Exception& error) {
    peer::fail(std::string("CORBA::") + error._name());
  }
}

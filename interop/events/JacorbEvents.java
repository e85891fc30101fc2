import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;
import java.util.Properties;
import java.util.concurrent.locks.LockSupport;
import org.jacorb.notification.AbstractChannelFactory;
import org.omg.CORBA.Any;
import org.omg.CORBA.IntHolder;
import org.omg.CORBA.ORB;
import org.omg.CORBA.OctetSeqHelper;
import org.omg.CosEventChannelAdmin.EventChannel;
import org.omg.CosEventChannelAdmin.EventChannelHelper;
import org.omg.CosEventChannelAdmin.ProxyPushConsumer;
import org.omg.CosEventChannelAdmin.ProxyPushSupplier;
import org.omg.CosEventComm.PushConsumerPOA;
import org.omg.CosNotification.Property;
import org.omg.CosNotifyChannelAdmin.EventChannelFactory;
import org.omg.CosNotifyChannelAdmin.EventChannelFactoryHelper;
import org.omg.PortableServer.POA;
import org.omg.PortableServer.POAHelper;

/**
 * The notification server of JacORB, with a supplier and consumers of untyped events. README.md
 * describes the arguments and the lines.
 */
public final class JacorbEvents {
    private static final int PAYLOAD = 64;
    private static final BufferedReader INPUT =
        new BufferedReader(new InputStreamReader(System.in));

    private static Properties properties() {
        Properties all = new Properties();
        all.put("org.omg.CORBA.ORBClass", "org.jacorb.orb.ORB");
        all.put("org.omg.CORBA.ORBSingletonClass", "org.jacorb.orb.ORBSingleton");
        all.put("jacorb.log.default.verbosity", "0");
        all.put("jacorb.dns.enable", "off");
        all.put("OAIAddr", "127.0.0.1");
        all.put("jacorb.poa.monitoring", "off");
        all.put("jacorb.use_imr", "off");
        return all;
    }

    private static void tell(String line) {
        System.out.println(line);
        System.out.flush();
    }

    private static void hear() throws IOException {
        if (INPUT.readLine() == null) {
            System.exit(0);
        }
    }

    private static void channel() throws Exception {
        AbstractChannelFactory served = AbstractChannelFactory.newFactory(properties());
        served.activate();
        ORB orb = ORB.init(new String[0], properties());
        EventChannelFactory factory =
            EventChannelFactoryHelper.narrow(orb.string_to_object(served.getIOR()));
        org.omg.CORBA.Object channel =
            factory.create_channel(new Property[0], new Property[0], new IntHolder());
        tell('"' + orb.object_to_string(channel) + '"');
    }

    private static void supply(ORB orb, String address, int warmUp, int events, long period)
            throws Exception {
        EventChannel channel = EventChannelHelper.narrow(orb.string_to_object(address));
        ProxyPushConsumer proxy = channel.for_suppliers().obtain_push_consumer();
        proxy.connect_push_supplier(null);
        tell('"' + address + '"');
        hear();
        byte[] payload = new byte[PAYLOAD];
        long begin = System.nanoTime();
        for (int number = 0; number < warmUp + events; number++) {
            long due = begin + number * period;
            for (long left; (left = due - System.nanoTime()) > 0;) {
                LockSupport.parkNanos(left);
            }
            ByteBuffer.wrap(payload).putLong(number < warmUp ? 0 : System.nanoTime());
            Any value = orb.create_any();
            OctetSeqHelper.insert(value, payload);
            proxy.push(value);
        }
        tell("{}");
        hear();
        proxy.disconnect_push_consumer();
    }

    private static final class Consumer extends PushConsumerPOA {
        private final List<Long> latencies;

        Consumer(List<Long> latencies) {
            this.latencies = latencies;
        }

        @Override
        public void push(Any value) {
            long stamp = ByteBuffer.wrap(OctetSeqHelper.extract(value)).getLong();
            long latency = System.nanoTime() - stamp;
            if (stamp != 0) {
                synchronized (latencies) {
                    latencies.add(latency);
                    latencies.notifyAll();
                }
            }
        }

        @Override
        public void disconnect_push_consumer() {
        }
    }

    private static void consume(ORB orb, String address, int consumers, int events)
            throws Exception {
        POA poa = POAHelper.narrow(orb.resolve_initial_references("RootPOA"));
        poa.the_POAManager().activate();
        EventChannel channel = EventChannelHelper.narrow(orb.string_to_object(address));
        List<Long> latencies = new ArrayList<>();
        List<ProxyPushSupplier> proxies = new ArrayList<>();
        for (int number = 0; number < consumers; number++) {
            ProxyPushSupplier proxy = channel.for_consumers().obtain_push_supplier();
            proxy.connect_push_consumer(new Consumer(latencies)._this(orb));
            proxies.add(proxy);
        }
        tell("{}");
        hear();
        synchronized (latencies) {
            long limit = System.nanoTime() + 2_000_000_000L;
            while (latencies.size() < consumers * events && System.nanoTime() < limit) {
                latencies.wait(100);
            }
            tell(latencies.toString());
        }
        for (ProxyPushSupplier proxy : proxies) {
            proxy.disconnect_push_supplier();
        }
        hear();
    }

    public static void main(String[] args) throws Exception {
        if (args[0].equals("channel")) {
            channel();
        } else {
            ORB orb = ORB.init(new String[0], properties());
            int first = Integer.parseInt(args[2]);
            int second = Integer.parseInt(args[3]);
            if (args[0].equals("supply")) {
                supply(orb, args[1], first, second, Long.parseLong(args[4]));
            } else {
                consume(orb, args[1], first, second);
            }
        }
        hear();
        System.exit(0);
    }
}

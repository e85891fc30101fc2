import java.util.Properties;
import org.omg.CORBA.ORB;

/** What both programs have in common. */
final class JacorbPeer {
    /** An ORB with MIOP beside IIOP, at the address that `-Dpeer.address` says. */
    static ORB orb() {
        Properties p = new Properties();
        p.put("org.omg.CORBA.ORBClass", "org.jacorb.orb.ORB");
        p.put("org.omg.CORBA.ORBSingletonClass", "org.jacorb.orb.ORBSingleton");
        p.put("jacorb.log.default.verbosity", "0");
        p.put("jacorb.dns.enable", "off");
        p.put("OAIAddr", System.getProperty("peer.address", "127.0.0.1"));
        p.put("jacorb.transport.factories",
            "org.jacorb.orb.iiop.IIOPFactories,org.jacorb.orb.miop.MIOPFactories");
        p.put("jacorb.transport.client.selector", "org.jacorb.orb.miop.MIOPProfileSelector");
        return ORB.init(new String[0], p);
    }

    static byte[] octets(int count) {
        byte[] octets = new byte[count];
        for (int i = 0; i < count; i++) {
            octets[i] = (byte) i;
        }
        return octets;
    }

    static long sum(byte[] octets) {
        long sum = 0;
        for (byte octet : octets) {
            sum += octet & 255;
        }
        return sum;
    }
}

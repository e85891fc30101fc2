import java.util.Properties;
import org.omg.BiDirPolicy.BIDIRECTIONAL_POLICY_TYPE;
import org.omg.BiDirPolicy.BOTH;
import org.omg.BiDirPolicy.BidirectionalPolicyValueHelper;
import org.omg.CORBA.Any;
import org.omg.CORBA.ORB;
import org.omg.CORBA.Policy;
import org.omg.PortableServer.ImplicitActivationPolicyValue;
import org.omg.PortableServer.POA;

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
        if (Boolean.getBoolean("peer.bidirectional")) {
            p.put("org.omg.PortableInterceptor.ORBInitializerClass.bidir_init",
                "org.jacorb.orb.giop.BiDirConnectionInitializer");
        }
        return ORB.init(new String[0], p);
    }

    /** The POA of the programs' objects; one for both directions with `-Dpeer.bidirectional=true`. */
    static POA poa(ORB orb, POA root) throws Exception {
        if (!Boolean.getBoolean("peer.bidirectional")) {
            return root;
        }
        Any both = orb.create_any();
        BidirectionalPolicyValueHelper.insert(both, BOTH.value);
        Policy[] policies = {
            orb.create_policy(BIDIRECTIONAL_POLICY_TYPE.value, both),
            root.create_implicit_activation_policy(
                ImplicitActivationPolicyValue.IMPLICIT_ACTIVATION),
        };
        return root.create_POA("both", root.the_POAManager(), policies);
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

import org.omg.CORBA.ORB;
import org.omg.PortableServer.POA;
import org.omg.PortableServer.POAHelper;

/** Has a member call back on the connection of this program: JacorbCalledBack MEMBER-IOR. Then ends the member. */
public final class JacorbCalledBack {
    public static void main(String[] args) throws Exception {
        ORB orb = JacorbPeer.orb();
        POA root = POAHelper.narrow(orb.resolve_initial_references("RootPOA"));
        root.the_POAManager().activate();
        POA poa = JacorbPeer.poa(orb, root);
        byte[] id = poa.activate_object(new JacorbMember.Impl(orb));
        Groups.Member own = Groups.MemberHelper.narrow(poa.id_to_reference(id));
        Groups.Member member = Groups.MemberHelper.narrow(orb.string_to_object(args[0]));
        for (int i = 0; i < 100; i++) {
            if (!"kcab".equals(member.relay(own, "back"))) {
                System.err.println("wrong: relay");
                System.exit(1);
            }
        }
        member.leave();
        orb.shutdown(true);
        System.exit(0);
    }
}

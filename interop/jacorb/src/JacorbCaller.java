import org.omg.CORBA.ORB;

/** Calls a group and one of its members: JacorbCaller GROUP-URL|- MEMBER-IOR. Without a group, the member alone. */
public final class JacorbCaller {
    public static void main(String[] args) throws Exception {
        ORB orb = JacorbPeer.orb();
        Groups.Member one = Groups.MemberHelper.narrow(orb.string_to_object(args[1]));
        check("gnisrever".equals(one.ask("reversing")), "ask");
        byte[] large = JacorbPeer.octets(100000);
        check(one.sum(large) == JacorbPeer.sum(large), "sum");
        Groups.Member all = args[0].equals("-")
            ? one
            : Groups.MemberHelper.unchecked_narrow(orb.string_to_object(args[0]));
        all.tell("short", JacorbPeer.octets(10));
        all.tell("long", JacorbPeer.octets(20000));
        all.leave();
        orb.shutdown(true);
        System.exit(0);
    }

    private static void check(boolean holds, String what) {
        if (!holds) {
            System.err.println("wrong: " + what);
            System.exit(1);
        }
    }
}

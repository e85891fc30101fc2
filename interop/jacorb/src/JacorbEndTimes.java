import org.omg.CORBA.Any;
import org.omg.CORBA.ORB;
import org.omg.CORBA.Policy;
import org.omg.CORBA.SetOverrideType;
import org.omg.CORBA.TIMEOUT;
import org.omg.Messaging.RELATIVE_REQ_TIMEOUT_POLICY_TYPE;

/**
 * Calls with end times of requests: JacorbEndTimes MEMBER-IOR HELD-IOR. The second object is held
 * back for a while, again and again. It is called until a request has expired at the server.
 */
public final class JacorbEndTimes {
    public static void main(String[] args) throws Exception {
        ORB orb = JacorbPeer.orb();
        System.out.println("in time " + member(orb, args[0], 3_600_000).ask("ab"));
        boolean isOver = false;
        for (int call = 0; !isOver && call < 1_000; call++) {
            try {
                member(orb, args[1], 100).ask("ab");
            } catch (TIMEOUT late) {
                // JacORB itself raises one with another number, before it sends a request.
                isOver = late.minor == 0x4f4d0002;
                System.out.println("late " + Integer.toHexString(late.minor) + " "
                    + late.completed.value());
            }
        }
        orb.shutdown(true);
        System.exit(0);
    }

    private static Groups.Member member(ORB orb, String ior, long milliseconds) throws Exception {
        Any value = orb.create_any();
        value.insert_ulonglong(milliseconds * 10_000);
        Policy[] policies = {orb.create_policy(RELATIVE_REQ_TIMEOUT_POLICY_TYPE.value, value)};
        org.omg.CORBA.Object object = orb.string_to_object(ior);
        return Groups.MemberHelper.unchecked_narrow(
            object._set_policy_override(policies, SetOverrideType.ADD_OVERRIDE));
    }
}

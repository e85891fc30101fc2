import org.omg.CORBA.Any;
import org.omg.CORBA.OBJECT_NOT_EXIST;
import org.omg.CORBA.ORB;
import org.omg.CORBA.Policy;
import org.omg.CORBA.SetOverrideType;
import org.omg.CORBA.TIMEOUT;
import org.omg.Messaging.SYNC_NONE;
import org.omg.Messaging.SYNC_SCOPE_POLICY_TYPE;
import org.omg.Messaging.SYNC_WITH_SERVER;
import org.omg.Messaging.SYNC_WITH_TARGET;
import org.omg.Messaging.SYNC_WITH_TRANSPORT;

/**
 * Tells a member something in each scope: JacorbScopes MEMBER-IOR ABSENT-IOR. Prints whether each
 * request was accepted, refused, or not answered in time.
 */
public final class JacorbScopes {
    public static void main(String[] args) throws Exception {
        ORB orb = JacorbPeer.orb();
        short[] scopes = {
            SYNC_NONE.value, SYNC_WITH_TRANSPORT.value, SYNC_WITH_SERVER.value,
            SYNC_WITH_TARGET.value,
        };
        for (short scope : scopes) {
            System.out.println("present " + scope + " " + tell(orb, args[0], scope));
            System.out.println("absent " + scope + " " + tell(orb, args[1], scope));
        }
        for (int call = 0; !isAnswered(orb, args[0]) && call < 100; call++) {}
        orb.shutdown(true);
        System.exit(0);
    }

    private static String tell(ORB orb, String ior, short scope) throws Exception {
        try {
            member(orb, ior, scope).tell("scope " + scope, JacorbPeer.octets(10));
            return "accepted";
        } catch (OBJECT_NOT_EXIST absent) {
            return "refused";
        } catch (TIMEOUT late) {
            return "unanswered";
        }
    }

    /** A call after which the requests before have arrived. */
    private static boolean isAnswered(ORB orb, String ior) throws Exception {
        try {
            Groups.MemberHelper.unchecked_narrow(orb.string_to_object(ior)).ask("end");
            return true;
        } catch (TIMEOUT late) {
            return false;
        }
    }

    private static Groups.Member member(ORB orb, String ior, short scope) throws Exception {
        Any value = orb.create_any();
        value.insert_short(scope);
        Policy[] policies = {orb.create_policy(SYNC_SCOPE_POLICY_TYPE.value, value)};
        org.omg.CORBA.Object object = orb.string_to_object(ior);
        return Groups.MemberHelper.unchecked_narrow(
            object._set_policy_override(policies, SetOverrideType.ADD_OVERRIDE));
    }
}

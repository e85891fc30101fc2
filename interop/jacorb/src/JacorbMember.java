import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import org.omg.CORBA.ORB;
import org.omg.PortableGroup.GOA;
import org.omg.PortableGroup.GOAHelper;
import org.omg.PortableServer.POA;
import org.omg.PortableServer.POAHelper;

/** A member of a group: JacorbMember IOR-FILE GROUP-URL|-. Writes the file with its own reference when it listens. */
public final class JacorbMember {
    static final class Impl extends Groups.MemberPOA {
        private final ORB orb;

        Impl(ORB orb) {
            this.orb = orb;
        }

        public void tell(String text, byte[] data) {
            System.out.println("heard " + text + " " + data.length + " " + JacorbPeer.sum(data));
        }

        public void leave() {
            new Thread(() -> orb.shutdown(true)).start();
        }

        public String ask(String text) {
            return new StringBuilder(text).reverse().toString();
        }

        public String relay(Groups.Member other, String text) {
            return other.ask(text);
        }

        public long sum(byte[] data) {
            return JacorbPeer.sum(data);
        }
    }

    public static void main(String[] args) throws Exception {
        ORB orb = JacorbPeer.orb();
        POA root = POAHelper.narrow(orb.resolve_initial_references("RootPOA"));
        root.the_POAManager().activate();
        POA poa = JacorbPeer.poa(orb, root);
        byte[] id = poa.activate_object(new Impl(orb));
        if (!args[1].equals("-")) {
            GOA goa = GOAHelper.narrow(poa);
            goa.associate_reference_with_id(orb.string_to_object(args[1]), id);
        }
        Path file = Path.of(args[0]);
        Path part = Path.of(args[0] + ".part");
        Files.writeString(part, orb.object_to_string(poa.id_to_reference(id)) + "\n");
        Files.move(part, file, StandardCopyOption.ATOMIC_MOVE);
        orb.run();
        System.exit(0);
    }
}

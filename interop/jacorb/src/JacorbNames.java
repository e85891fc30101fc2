import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import org.omg.CORBA.ORB;
import org.omg.CosNaming.Binding;
import org.omg.CosNaming.BindingHolder;
import org.omg.CosNaming.BindingIteratorHolder;
import org.omg.CosNaming.BindingListHolder;
import org.omg.CosNaming.BindingType;
import org.omg.CosNaming.NameComponent;
import org.omg.CosNaming.NamingContext;
import org.omg.CosNaming.NamingContextExt;
import org.omg.CosNaming.NamingContextExtHelper;
import org.omg.CosNaming.NamingContextPackage.AlreadyBound;
import org.omg.CosNaming.NamingContextPackage.NotEmpty;
import org.omg.CosNaming.NamingContextPackage.NotFound;
import org.omg.CosNaming.NamingContextPackage.NotFoundReason;

/** Uses a name server: JacorbNames ROOT-URL. */
public final class JacorbNames {
    public static void main(String[] args) throws Exception {
        ORB orb = JacorbPeer.orb();
        NamingContextExt root = NamingContextExtHelper.narrow(orb.string_to_object(args[0]));
        NamingContext plant = root.bind_new_context(root.to_name("plant.area"));
        NameComponent[] radar = root.to_name("plant.area/radar\\.1.sensor");
        check("radar.1".equals(radar[1].id) && "sensor".equals(radar[1].kind), "to_name");
        check("plant.area/radar\\.1.sensor".equals(root.to_string(radar)), "to_string");
        root.bind(radar, root);
        check(root.resolve(radar)._is_equivalent(root.resolve_str(root.to_string(radar))), "resolve");
        check(root.resolve(radar)._is_a("IDL:omg.org/CosNaming/NamingContext:1.0"), "is_a");
        String url = root.to_url(":example:2809", "plant.area/a b");
        check("corbaname::example:2809#plant.area/a%20b".equals(url), url);
        try {
            root.bind(radar, root);
            check(false, "a second bind");
        } catch (AlreadyBound expected) {
        }
        root.rebind(radar, plant);
        try {
            root.resolve(root.to_name("plant.area/none/deep"));
            check(false, "resolve of a missing name");
        } catch (NotFound error) {
            check(error.why.value() == NotFoundReason._missing_node, "the reason");
            check(error.rest_of_name.length == 2 && "none".equals(error.rest_of_name[0].id), "the rest");
        }

        // A list in pieces: one in the reply, the others one by one and by two.
        NamingContext many = root.new_context();
        root.bind_context(root.to_name("many"), many);
        for (int i = 0; i < 6; i++) {
            many.bind(root.to_name("o" + i), root);
        }
        BindingListHolder listed = new BindingListHolder();
        BindingIteratorHolder iterator = new BindingIteratorHolder();
        many.list(1, listed, iterator);
        List<String> names = new ArrayList<>();
        add(names, listed.value);
        BindingHolder one = new BindingHolder();
        check(iterator.value.next_one(one), "next_one");
        add(names, new Binding[] {one.value});
        while (iterator.value.next_n(2, listed)) {
            add(names, listed.value);
        }
        iterator.value.destroy();
        Collections.sort(names);
        check("[o0, o1, o2, o3, o4, o5]".equals(names.toString()), names.toString());

        try {
            many.destroy();
            check(false, "destroy of a context with bindings");
        } catch (NotEmpty expected) {
        }
        for (String name : names) {
            many.unbind(root.to_name(name));
        }
        root.unbind(root.to_name("many"));
        many.destroy();
        check(many._non_existent(), "a destroyed context");
        orb.shutdown(true);
        System.exit(0);
    }

    private static void add(List<String> names, Binding[] bindings) {
        for (Binding binding : bindings) {
            check(binding.binding_type.value() == BindingType._nobject, "the type of a binding");
            names.add(binding.binding_name[0].id);
        }
    }

    private static void check(boolean holds, String what) {
        if (!holds) {
            System.err.println("wrong: " + what);
            System.exit(1);
        }
    }
}

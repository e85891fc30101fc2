// Offers quotes by omniORB, and prints the reference of the object.

#include "quoter.hh"

#include <iostream>
#include <string>

namespace {

class Book : public POA_Quoter {
public:
    Quote* get_quote(const char* symbol, const DoubleSeq& shifts) override {
        if (std::string(symbol) != "ACME") {
            throw UnknownSymbol(symbol);
        }
        Quote_var quote = new Quote;
        quote->symbol = symbol;
        quote->levels.length(3);
        for (CORBA::ULong i = 0; i < 3; ++i) {
            quote->levels[i].px = 100.0 + 0.5 * i;
            quote->levels[i].qty = static_cast<CORBA::Long>(10 * (i + 1));
        }
        quote->curve.length(shifts.length());
        for (CORBA::ULong i = 0; i < shifts.length(); ++i) {
            quote->curve[i] = quote->levels[0].px + shifts[i];
        }
        return quote._retn();
    }

    CORBA::Long ping(CORBA::Long n) override { return n; }
};

}  // namespace

int main(int argc, char** argv) {
    try {
        CORBA::ORB_var orb = CORBA::ORB_init(argc, argv);
        CORBA::Object_var object = orb->resolve_initial_references("RootPOA");
        PortableServer::POA_var root = PortableServer::POA::_narrow(object);
        PortableServer::Servant_var<Book> book = new Book;
        PortableServer::ObjectId_var id = root->activate_object(book);
        CORBA::Object_var quoter = root->id_to_reference(id);
        CORBA::String_var reference = orb->object_to_string(quoter);
        std::cout << reference << std::endl;
        PortableServer::POAManager_var manager = root->the_POAManager();
        manager->activate();
        orb->run();
        return 0;
    } catch (const CORBA::Exception& exception) {
        std::cerr << exception._name() << std::endl;
        return 1;
    }
}
